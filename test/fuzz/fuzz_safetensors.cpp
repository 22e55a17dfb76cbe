//===- fuzz_safetensors.cpp - weights ------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Bytes that may be a safetensors file.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/error.h"

#include <cstring>

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {"\"dtype\":\"F32\"",
          "\"F64\"",
          "\"F16\"",
          "\"BF16\"",
          "\"I32\"",
          "\"I64\"",
          "\"shape\":[",
          "\"data_offsets\":[",
          "\"__metadata__\":{",
          "{",
          "}",
          "[",
          "]",
          ",",
          ":",
          "\"",
          "\\u0000",
          "null",
          "1e5",
          "-0",
          " "};
}

static bool sameBits(const rt::TensorMap &a, const rt::TensorMap &b) {
  if (a.size() != b.size())
    return false;
  auto other = b.begin();
  for (const auto &[name, tensor] : a) {
    if (name != other->first || tensor.shape != other->second.shape ||
        tensor.values.size() != other->second.values.size() ||
        (!tensor.values.empty() &&
         std::memcmp(tensor.values.data(), other->second.values.data(),
                     tensor.values.size() * sizeof(float)) != 0))
      return false;
    ++other;
  }
  return true;
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  rt::TensorMap tensors;
  try {
    tensors = rt::parseSafetensors(asText(bytes, size), "mutant");
  } catch (const rt::Error &error) {
    checkRefusal(error.what(), "mutant");
    return 0;
  }
  for (const auto &[name, tensor] : tensors) {
    size_t elements = 1;
    for (int64_t dim : tensor.shape)
      elements *= static_cast<size_t>(dim);
    require(tensor.values.size() == elements, "a tensor fills its shape");
  }
  require(
      sameBits(rt::parseSafetensors(rt::formatSafetensors(tensors), "again"),
               tensors),
      "tensors are read back as they are written");
  return 1;
}
