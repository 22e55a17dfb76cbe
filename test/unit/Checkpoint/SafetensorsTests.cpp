//===- SafetensorsTests.cpp - tensor files, good and bad ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Round trips, the exact bytes of a file, the foreign dtypes, and files made to
// do harm.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/error.h"
#include "takt-rt/data/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

namespace takt::rt {
namespace {

std::string makeFile(const std::string &header, const std::string &data) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file.push_back(static_cast<char>(uint64_t(header.size()) >> (8 * i)));
  return file + header + data;
}

std::string bytesOf(const std::vector<uint32_t> &words) {
  return std::string(reinterpret_cast<const char *>(words.data()),
                     words.size() * 4);
}

TEST(Safetensors, RoundTrip) {
  TensorMap tensors;
  tensors["b"] = {{2, 3}, {1, -2.5f, 3e-40f, 0, -0.0f, 1e38f}};
  tensors["a.\"quoted\" \xc3\xa4"] = {{}, {4}};
  tensors["empty"] = {{0, 7}, {}};
  std::string path =
      (std::filesystem::path(testing::TempDir()) / "takt-round.safetensors")
          .string();
  writeSafetensors(path, tensors, {{"step", "7"}});
  TensorMap read = readSafetensors(path);
  std::filesystem::remove(path);
  ASSERT_EQ(read.size(), 3u);
  for (const auto &[name, tensor] : tensors) {
    EXPECT_EQ(read.at(name).shape, tensor.shape) << name;
    ASSERT_EQ(read.at(name).values.size(), tensor.values.size()) << name;
    EXPECT_TRUE(tensor.values.empty() ||
                std::memcmp(read.at(name).values.data(), tensor.values.data(),
                            tensor.values.size() * 4) == 0)
        << name;
  }
}

TEST(Safetensors, WritesTheDocumentedBytes) {
  std::string header =
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(formatSafetensors({{"x", {{2}, {1.0f, -2.0f}}}}),
            makeFile(header, bytesOf({0x3f800000, 0xc0000000})));
}

TEST(Safetensors, ReadsForeignTypes) {
  std::string header = R"({
    "f16": {"dtype": "F16", "shape": [8], "data_offsets": [0, 16]},
    "bf16": {"dtype": "BF16", "shape": [2], "data_offsets": [16, 20]},
    "i32": {"dtype": "I32", "shape": [1], "data_offsets": [20, 24]},
    "f64": {"dtype": "F64", "shape": [1], "data_offsets": [24, 32]}})";
  std::string data;
  for (uint16_t half : {0x3c00, 0xc000, 0x0001, 0x8000, 0x7bff, 0x7c00, 0x7e00,
                        0x3555, 0x3f80, 0xc040}) {
    data.push_back(char(half & 255));
    data.push_back(char(half >> 8));
  }
  int32_t i = -5;
  double d = 0.1;
  data.append(reinterpret_cast<char *>(&i), 4);
  data.append(reinterpret_cast<char *>(&d), 8);
  TensorMap read = parseSafetensors(makeFile(header, data), "f");
  const std::vector<float> &half = read.at("f16").values;
  EXPECT_EQ(half[0], 1.0f);
  EXPECT_EQ(half[1], -2.0f);
  EXPECT_EQ(half[2], 0x1p-24f);
  EXPECT_EQ(half[3], 0.0f);
  EXPECT_TRUE(std::signbit(half[3]));
  EXPECT_EQ(half[4], 65504.0f);
  EXPECT_EQ(half[5], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half[6]));
  EXPECT_EQ(half[7], 0x1.554p-2f);
  EXPECT_EQ(read.at("bf16").values, (std::vector<float>{1.0f, -3.0f}));
  EXPECT_EQ(read.at("i32").values, std::vector<float>{-5.0f});
  EXPECT_EQ(read.at("f64").values, std::vector<float>{0.1f});
}

struct Hostile {
  const char *header;
  const char *says; ///< part of the message
};

class HostileFile : public testing::TestWithParam<Hostile> {};

// The data is 8 bytes.
TEST_P(HostileFile, IsRefused) {
  try {
    parseSafetensors(makeFile(GetParam().header, "01234567"), "h.st");
    FAIL() << "was accepted: " << GetParam().header;
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::BadInput);
    EXPECT_NE(std::string(error.what()).find("'h.st'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(GetParam().says),
              std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Headers, HostileFile,
    testing::Values(
        Hostile{"", "JSON"}, Hostile{"{", "JSON"}, Hostile{"[]", "object"},
        Hostile{"{\"a\": \xff}", "JSON"}, Hostile{"{}", "8 bytes follow"},
        Hostile{R"({"a": 3})", "'a' lacks"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [2]}})", "'a' lacks"},
        Hostile{R"({"a": {"dtype": "F33", "shape": [2],
                    "data_offsets": [0, 8]}})",
                "\"F33\""},
        Hostile{R"({"a": {"dtype": 7, "shape": [2], "data_offsets": [0, 8]}})",
                "dtype 7"},
        Hostile{R"({"a": {"dtype": "F32", "shape": 2,
                    "data_offsets": [0, 8]}})",
                "'shape'"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [-2],
                    "data_offsets": [0, 8]}})",
                "not made of sizes"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [2.0],
                    "data_offsets": [0, 8]}})",
                "not made of sizes"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [18446744073709551615],
                    "data_offsets": [0, 8]}})",
                "not made of sizes"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [3],
                    "data_offsets": [0, 8]}})",
                "has 8 bytes"},
        Hostile{R"({"a": {"dtype": "F32",
                    "shape": [4294967296, 4294967296, 4294967296],
                    "data_offsets": [0, 8]}})",
                "overflows"},
        // 2^62 + 2 elements of 4 bytes: 8 bytes modulo 2^64.
        Hostile{R"({"a": {"dtype": "F32", "shape": [4611686018427387906],
                    "data_offsets": [0, 8]}})",
                "has 8 bytes"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [2],
                    "data_offsets": [0, 16]}})",
                "of 8 bytes of data"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [0],
                    "data_offsets": [8, 0]}})",
                "[8, 0)"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [2],
                    "data_offsets": [0]}})",
                "'data_offsets'"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [2],
                    "data_offsets": [-8, 0]}})",
                "'data_offsets'"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [2],
                    "data_offsets": [0, 8]},
                    "b": {"dtype": "F32", "shape": [1],
                    "data_offsets": [4, 8]}})",
                "'b' overlaps"},
        Hostile{R"({"b": {"dtype": "F32", "shape": [1],
                    "data_offsets": [4, 8]}})",
                "'b' begins at byte 4"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [1],
                    "data_offsets": [0, 4]}})",
                "4 bytes follow"},
        Hostile{R"({"a": {"dtype": "F32", "shape": [1],
                    "data_offsets": [0, 4]},
                    "a": {"dtype": "F32", "shape": [2],
                    "data_offsets": [0, 8]}})",
                "'a' stands twice"},
        Hostile{R"({"__metadata__": [1], "a": {"dtype": "F32", "shape": [2],
                    "data_offsets": [0, 8]}})",
                "__metadata__"}));

TEST(HostileFiles, ShortAndHugeHeaders) {
  EXPECT_THROW(parseSafetensors("", "f"), Error);
  EXPECT_THROW(parseSafetensors("1234567", "f"), Error);
  EXPECT_THROW(parseSafetensors(std::string(8, '\xff'), "f"), Error);
  EXPECT_THROW(parseSafetensors(std::string("\x05\0\0\0\0\0\0\0{}", 10), "f"),
               Error);
  std::string deep(200000, '[');
  EXPECT_THROW(parseSafetensors(makeFile(deep, ""), "f"), Error);
  EXPECT_THROW(readSafetensors("/nonexistent.safetensors"), Error);
}

TEST(HostileFiles, EveryDamagedByteIsRefusedOrRead) {
  std::string good = formatSafetensors(
      {{"w", {{2, 2}, {1, 2, 3, 4}}}, {"v", {{1}, {5}}}}, {{"k", "v"}});
  int refused = 0;
  for (size_t i = 0; i < 4 * good.size(); ++i) {
    std::string bad = good;
    bad[i % good.size()] = static_cast<char>(draw(1, i));
    try {
      parseSafetensors(bad, "f");
    } catch (const Error &error) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_THROW(parseSafetensors(good.substr(0, n), "f"), Error) << n;
}

} // namespace
} // namespace takt::rt
