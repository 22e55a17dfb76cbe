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

/// Writes F32 tensors in the order of their names, as a whole or not at all.
/// Equal tensors give equal bytes.
void writeSafetensors(const std::string &path, const TensorMap &tensors,
                      const std::map<std::string, std::string> &metadata = {});

/// The content `writeSafetensors` writes.
std::string
formatSafetensors(const TensorMap &tensors,
                  const std::map<std::string, std::string> &metadata = {});

} // namespace takt::rt
