//===- fuzz.h - what a fuzz harness offers ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A harness feeds bytes to one reader and insists on what the reader promises:
// it takes them, and what it returns is consistent, or it refuses them and says
// where. The program ends at once (with the input saved by the driver) when a
// promise is broken; the sanitizers watch the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace takt::fuzz {

/// Words that the mutator puts in: keywords and limits of the format.
std::vector<std::string> dictionary();

/// 1: taken and consistent; 0: refused with a place.
int fuzzOne(const uint8_t *bytes, size_t size);

/// Ends the program, saying what was promised.
[[noreturn]] void broken(const std::string &promise);

inline void require(bool holds, const std::string &promise) {
  if (!holds)
    broken(promise);
}

inline std::string asText(const uint8_t *bytes, size_t size) {
  return std::string(reinterpret_cast<const char *>(bytes), size);
}

} // namespace takt::fuzz
