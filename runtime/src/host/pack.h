//===- pack.h - values as bytes between processes of a run ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Numbers as they lie in memory: all processes of a run are the same program.
// What is read is bounded by what is there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/error.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace takt::rt::host {

class Packer {
public:
  template <typename T>
  void add(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
  }
  template <typename T>
  void addAll(const std::vector<T> &values) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(uint64_t(values.size()));
    bytes.append(reinterpret_cast<const char *>(values.data()),
                 values.size() * sizeof(T));
  }

  std::string bytes;
};

/// Throws `Error` (Communication) at the end of the bytes.
class Unpacker {
public:
  explicit Unpacker(const std::string &bytes) : bytes(bytes) {}

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, next(1, sizeof(T)), sizeof(T));
    return value;
  }
  template <typename T>
  std::vector<T> takeAll() {
    uint64_t count = take<uint64_t>();
    const char *from = next(count, sizeof(T));
    std::vector<T> values(count);
    if (count > 0)
      std::memcpy(values.data(), from, count * sizeof(T));
    return values;
  }
  bool atEnd() const { return at == bytes.size(); }

private:
  const char *next(uint64_t count, size_t size) {
    if (count > (bytes.size() - at) / size)
      throw Error("a rank sends less than it should", ExitCode::Communication);
    const char *from = bytes.data() + at;
    at += count * size;
    return from;
  }

  const std::string &bytes;
  size_t at = 0;
};

} // namespace takt::rt::host
