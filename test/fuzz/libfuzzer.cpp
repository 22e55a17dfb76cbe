//===- libfuzzer.cpp - a harness under libFuzzer ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Takes the place of the driver where the compiler is Clang. libFuzzer saves
// the input itself.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"

#include <cstdio>
#include <cstdlib>

void takt::fuzz::broken(const std::string &promise) {
  std::fprintf(stderr, "broken promise: %s\n", promise.c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  takt::fuzz::fuzzOne(bytes, size);
  return 0;
}
