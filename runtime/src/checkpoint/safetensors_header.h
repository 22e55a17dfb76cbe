//===- safetensors_header.h - the header of tensor files --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a header says, read and checked against the size of its file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace takt::rt::safetensors {

enum class Format { F32, F64, F16, BF16, I32 };

struct FormatInfo {
  const char *name;
  Format format;
  uint64_t bytes; ///< of an element
};

struct Entry {
  std::string name;
  FormatInfo format;
  std::vector<int64_t> shape;
  uint64_t elements, begin, end; ///< bytes from the start of the data
};

struct Header {
  std::vector<Entry> entries; ///< by place in the file, without gaps
  std::map<std::string, std::string> metadata;
};

/// Bytes of the JSON header behind the first eight, which `start` points to.
uint64_t headerBytes(const char *start, uint64_t fileBytes,
                     const std::string &file);

/// Throws `Error` (BadInput), naming file and tensor, for everything that is no
/// header of `dataBytes` bytes of data.
Header parseHeader(const std::string &text, uint64_t dataBytes,
                   const std::string &file);

} // namespace takt::rt::safetensors
