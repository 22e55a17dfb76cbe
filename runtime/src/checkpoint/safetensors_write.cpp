//===- safetensors_write.cpp - writer of tensor files ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The header is padded with spaces to a multiple of 8 bytes, so that tensors
// lie aligned for readers that map the file.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/safetensors.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace takt::rt {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensors are written as they lie in memory");

std::string safetensorsHeader(
    const std::vector<std::pair<std::string, std::vector<int64_t>>> &tensors,
    const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto &[name, shape] : tensors) {
    uint64_t bytes = sizeof(float);
    for (int64_t extent : shape)
      bytes *= extent;
    header[name] = {{"dtype", "F32"},
                    {"shape", shape},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string start;
  for (int i = 0; i < 8; ++i)
    start.push_back(static_cast<char>(uint64_t(text.size()) >> (8 * i)));
  return start + text;
}

std::string
formatSafetensors(const TensorMap &tensors,
                  const std::map<std::string, std::string> &metadata) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
  for (const auto &[name, tensor] : tensors) {
    uint64_t elements = 1;
    for (int64_t extent : tensor.shape)
      elements *= extent;
    if (elements != tensor.values.size())
      throw Error(
          fmt::format("tensor '{}' has {} values where its shape has {}", name,
                      tensor.values.size(), elements),
          ExitCode::Internal);
    shapes.emplace_back(name, tensor.shape);
  }
  std::string content = safetensorsHeader(shapes, metadata);
  for (const auto &[name, tensor] : tensors)
    content.append(reinterpret_cast<const char *>(tensor.values.data()),
                   tensor.values.size() * sizeof(float));
  return content;
}

void writeSafetensors(const std::string &path, const TensorMap &tensors,
                      const std::map<std::string, std::string> &metadata) {
  writeFile(path, formatSafetensors(tensors, metadata));
}

} // namespace takt::rt
