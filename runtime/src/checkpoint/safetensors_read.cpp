//===- safetensors_read.cpp - reader of tensor files ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tensors are converted once the header has been checked as a whole.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/safetensors.h"

#include "safetensors_header.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace takt::rt {

namespace {
using namespace safetensors;

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
void convert(const char *bytes, uint64_t elements, float *out, F toFloat) {
  for (uint64_t i = 0; i < elements; ++i) {
    S element;
    std::memcpy(&element, bytes + i * sizeof(S), sizeof(S));
    out[i] = toFloat(element);
  }
}

void toFloats(const Entry &entry, const char *bytes, float *out) {
  auto cast = [](auto value) { return static_cast<float>(value); };
  switch (entry.format.format) {
  case Format::F32:
    convert<float>(bytes, entry.elements, out, cast);
    break;
  case Format::F64:
    convert<double>(bytes, entry.elements, out, cast);
    break;
  case Format::I32:
    convert<int32_t>(bytes, entry.elements, out, cast);
    break;
  case Format::F16:
    convert<uint16_t>(bytes, entry.elements, out, fromHalf);
    break;
  case Format::BF16:
    convert<uint16_t>(bytes, entry.elements, out, [](uint16_t value) {
      return fromBits(uint32_t(value) << 16);
    });
    break;
  }
}
} // namespace

TensorMap parseSafetensors(const std::string &content,
                           const std::string &name) {
  uint64_t bytes = headerBytes(content.data(), content.size(), name);
  Header header =
      parseHeader(content.substr(8, bytes), content.size() - 8 - bytes, name);
  const char *data = content.data() + 8 + bytes;
  TensorMap tensors;
  for (const Entry &entry : header.entries) {
    Tensor tensor{entry.shape, std::vector<float>(entry.elements)};
    toFloats(entry, data + entry.begin, tensor.values.data());
    tensors.emplace(entry.name, std::move(tensor));
  }
  return tensors;
}

TensorMap readSafetensors(const std::string &path) {
  return parseSafetensors(readFile(path), path);
}

//===----------------------------------------------------------------------===//
// Files tensor by tensor
//===----------------------------------------------------------------------===//

static std::ifstream openFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(
        fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  return file;
}

static void readAt(std::ifstream &file, const std::string &path, uint64_t at,
                   char *out, uint64_t bytes) {
  file.seekg(std::streamoff(at));
  if (!file.read(out, std::streamsize(bytes)))
    throw Error(fmt::format("cannot read {} bytes at byte {} of '{}'", bytes,
                            at, path));
}

SafetensorsIndex readSafetensorsIndex(const std::string &path) {
  std::ifstream file = openFile(path);
  file.seekg(0, std::ios::end);
  std::streamoff end = file.tellg();
  if (end < 0)
    throw Error(fmt::format("cannot read '{}'", path));
  uint64_t size = uint64_t(end);
  char start[8] = {};
  readAt(file, path, 0, start, std::min<uint64_t>(size, sizeof(start)));
  uint64_t bytes = headerBytes(start, size, path);
  uint64_t dataBegin = 8 + bytes;
  std::string text(bytes, '\0');
  readAt(file, path, 8, text.data(), bytes);
  Header header = parseHeader(text, size - dataBegin, path);
  SafetensorsIndex index;
  for (Entry &entry : header.entries)
    index.tensors.push_back({std::move(entry.name), entry.format.name,
                             std::move(entry.shape), dataBegin + entry.begin,
                             dataBegin + entry.end});
  index.metadata = std::move(header.metadata);
  return index;
}

void readTensor(const std::string &path, const TensorInfo &tensor, float *out) {
  if (tensor.dtype != "F32")
    throw Error(fmt::format("'{}': tensor '{}' has the dtype {}; F32 is read",
                            path, tensor.name, tensor.dtype));
  std::ifstream file = openFile(path);
  readAt(file, path, tensor.begin, reinterpret_cast<char *>(out),
         tensor.end - tensor.begin);
}

} // namespace takt::rt
