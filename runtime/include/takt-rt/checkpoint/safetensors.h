//===- safetensors.h - tensors in files -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reader and writer of the safetensors format: 8 bytes little-endian length of
// the header, a JSON header {"name": {"dtype", "shape", "data_offsets"}, ...,
// "__metadata__": {...}}, then the tensors' bytes without gaps. Readers and
// writers of other frameworks exchange weights with Takt through it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace takt::rt {

/// A row-major float tensor.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Tensors by name.
using TensorMap = std::map<std::string, Tensor>;

/// Reads all tensors as float: F32 as it is, F64, F16, BF16 and I32 converted.
/// Throws `Error` (BadInput), naming file and tensor, for everything else: a
/// file cut short, a header that is no JSON object or names a tensor twice,
/// unknown dtypes, sizes that do not match shapes, ranges that overlap, leave
/// gaps or leave the file.
TensorMap readSafetensors(const std::string &path);

/// The same from the file's content; `name` is for messages.
TensorMap parseSafetensors(const std::string &content, const std::string &name);

/// A tensor as a file's header has it.
struct TensorInfo {
  std::string name;
  std::string dtype; ///< "F32", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; ///< bytes of the file
};

struct SafetensorsIndex {
  std::vector<TensorInfo> tensors; ///< by place in the file
  std::map<std::string, std::string> metadata;
};

/// Reads the header only, for files of any size. Throws as `readSafetensors`.
SafetensorsIndex readSafetensorsIndex(const std::string &path);

/// Reads one F32 tensor of a file, as its index has it, into room for its
/// elements. Throws `Error` (BadInput) for another dtype or a file cut short.
void readTensor(const std::string &path, const TensorInfo &tensor, float *out);

/// Writes F32 tensors in the order of their names, as a whole or not at all.
/// Equal tensors give equal bytes.
void writeSafetensors(const std::string &path, const TensorMap &tensors,
                      const std::map<std::string, std::string> &metadata = {});

/// The first bytes of a file of F32 tensors in the order given: length and JSON
/// header, padded so that the tensors behind it lie at multiples of 8 bytes.
std::string safetensorsHeader(
    const std::vector<std::pair<std::string, std::vector<int64_t>>> &tensors,
    const std::map<std::string, std::string> &metadata);

/// The content `writeSafetensors` writes.
std::string
formatSafetensors(const TensorMap &tensors,
                  const std::map<std::string, std::string> &metadata = {});

} // namespace takt::rt
