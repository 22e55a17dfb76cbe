//===- safetensors_read.cpp - reader of tensor files ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A file is foreign input: the header is checked as a whole, every number
// before it is used, and only then are tensors converted.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/safetensors.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace takt::rt {

namespace {
using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr uint64_t kMostHeader = 100'000'000;
constexpr size_t kMostAxes = 32;

enum class Format { F32, F64, F16, BF16, I32 };

struct FormatInfo {
  const char *name;
  Format format;
  uint64_t bytes;
};
constexpr FormatInfo kFormats[] = {{"F32", Format::F32, 4},
                                   {"F64", Format::F64, 8},
                                   {"F16", Format::F16, 2},
                                   {"BF16", Format::BF16, 2},
                                   {"I32", Format::I32, 4}};

struct Entry {
  std::string name;
  FormatInfo format;
  std::vector<int64_t> shape;
  uint64_t elements, begin, end;
};

[[noreturn]] void refuse(const std::string &file, const std::string &why) {
  throw Error(fmt::format("'{}' is no safetensors file: {}", file, why));
}

[[noreturn]] void refuseTensor(const std::string &file,
                               const std::string &tensor,
                               const std::string &why) {
  throw Error(fmt::format("'{}': tensor '{}' {}", file, tensor, why));
}

uint64_t littleEndian(const char *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// The header's JSON; refuses names given twice, which a JSON map would hide.
json parseHeader(const std::string &text, const std::string &file) {
  std::set<std::string> names;
  std::string twice;
  json::parser_callback_t callback = [&](int depth, json::parse_event_t event,
                                         json &parsed) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  json header;
  try {
    header = json::parse(text, callback);
  } catch (const json::exception &) {
    refuse(file, "its header is not JSON");
  }
  if (!twice.empty())
    refuseTensor(file, twice, "stands twice in the header");
  if (!header.is_object())
    refuse(file, "its header is not a JSON object");
  return header;
}

/// A non-negative integer below 2^63.
bool isSize(const json &value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max());
}

Entry parseEntry(const std::string &name, const json &item, uint64_t dataBytes,
                 const std::string &file) {
  auto wrong = [&](const std::string &why) { refuseTensor(file, name, why); };
  if (!item.is_object() || !item.contains("dtype") || !item.contains("shape") ||
      !item.contains("data_offsets"))
    wrong("lacks 'dtype', 'shape' or 'data_offsets'");
  Entry entry;
  entry.name = name;
  const json &dtype = item["dtype"];
  const FormatInfo *format = std::find_if(
      std::begin(kFormats), std::end(kFormats), [&](const FormatInfo &f) {
        return dtype.is_string() && dtype == f.name;
      });
  if (format == std::end(kFormats))
    wrong(
        fmt::format("has the dtype {}; F32, F64, F16, BF16 and I32 are read",
                    dtype.dump(-1, ' ', true, json::error_handler_t::replace)));
  entry.format = *format;
  const json &shape = item["shape"];
  if (!shape.is_array() || shape.size() > kMostAxes)
    wrong(fmt::format("has a 'shape' that is no list of at most {} sizes",
                      kMostAxes));
  entry.elements = 1;
  for (const json &extent : shape) {
    if (!isSize(extent))
      wrong("has a 'shape' that is not made of sizes");
    entry.shape.push_back(extent.get<int64_t>());
    if (__builtin_mul_overflow(entry.elements, extent.get<uint64_t>(),
                               &entry.elements))
      wrong("has a 'shape' whose product overflows");
  }
  const json &offsets = item["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !isSize(offsets[0]) ||
      !isSize(offsets[1]))
    wrong("has 'data_offsets' that are no pair of sizes");
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > dataBytes)
    wrong(fmt::format("lies at bytes [{}, {}) of {} bytes of data", entry.begin,
                      entry.end, dataBytes));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(entry.elements, format->bytes, &bytes) ||
      bytes != entry.end - entry.begin)
    wrong(fmt::format("of shape [{}] and dtype {} has {} bytes",
                      fmt::join(entry.shape, ", "), format->name,
                      entry.end - entry.begin));
  return entry;
}

/// Tensors must cover the data from its first to its last byte, each byte once.
void checkCover(std::vector<Entry> &entries, uint64_t dataBytes,
                const std::string &file) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry &a, const Entry &b) {
                     return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
                   });
  uint64_t end = 0;
  for (const Entry &entry : entries) {
    if (entry.begin < end)
      refuseTensor(file, entry.name, "overlaps another tensor");
    if (entry.begin > end)
      refuseTensor(file, entry.name,
                   fmt::format("begins at byte {}, {} bytes after the one "
                               "before it",
                               entry.begin, entry.begin - end));
    end = entry.end;
  }
  if (end != dataBytes)
    refuse(file,
           fmt::format("{} bytes follow its last tensor", dataBytes - end));
}

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// IEEE binary16 to binary32; exact for every value.
float fromHalf(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f)
    return fromBits(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0)
    return fromBits(sign | (exponent + 112) << 23 | mantissa << 13);
  float value = float(mantissa) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

template <typename S, typename F>
void convert(const char *bytes, std::vector<float> &out, F toFloat) {
  for (size_t i = 0; i < out.size(); ++i) {
    S element;
    std::memcpy(&element, bytes + i * sizeof(S), sizeof(S));
    out[i] = toFloat(element);
  }
}

std::vector<float> toFloats(const Entry &entry, const char *bytes) {
  std::vector<float> out(entry.elements);
  auto cast = [](auto value) { return static_cast<float>(value); };
  switch (entry.format.format) {
  case Format::F32:
    convert<float>(bytes, out, cast);
    break;
  case Format::F64:
    convert<double>(bytes, out, cast);
    break;
  case Format::I32:
    convert<int32_t>(bytes, out, cast);
    break;
  case Format::F16:
    convert<uint16_t>(bytes, out, fromHalf);
    break;
  case Format::BF16:
    convert<uint16_t>(bytes, out, [](uint16_t value) {
      return fromBits(uint32_t(value) << 16);
    });
    break;
  }
  return out;
}
} // namespace

TensorMap parseSafetensors(const std::string &content,
                           const std::string &name) {
  if (content.size() < 8)
    refuse(name, fmt::format("it has {} bytes", content.size()));
  uint64_t headerBytes = littleEndian(content.data());
  if (headerBytes > kMostHeader || headerBytes > content.size() - 8)
    refuse(name, fmt::format("it says its header has {} bytes, but {} follow",
                             headerBytes, content.size() - 8));
  json header = parseHeader(content.substr(8, headerBytes), name);
  uint64_t dataBytes = content.size() - 8 - headerBytes;
  std::vector<Entry> entries;
  for (const auto &[key, item] : header.items()) {
    if (key != kMetadata) {
      entries.push_back(parseEntry(key, item, dataBytes, name));
      continue;
    }
    if (!item.is_object() ||
        !std::all_of(item.begin(), item.end(),
                     [](const json &value) { return value.is_string(); }))
      refuse(name, "its '__metadata__' is no map of strings");
  }
  checkCover(entries, dataBytes, name);
  const char *data = content.data() + 8 + headerBytes;
  TensorMap tensors;
  for (const Entry &entry : entries)
    tensors[entry.name] = {entry.shape, toFloats(entry, data + entry.begin)};
  return tensors;
}

TensorMap readSafetensors(const std::string &path) {
  return parseSafetensors(readFile(path), path);
}

} // namespace takt::rt
