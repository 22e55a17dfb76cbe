//===- synthetic_source.cpp - random samples ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Random samples for models without a data set: studies of speed, and tests.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/data/source.h"

#include "takt-rt/core/error.h"
#include "takt-rt/data/init.h"
#include "takt-rt/data/random.h"

#include <fmt/format.h>

#include <limits>

namespace takt::rt {

namespace {
class SyntheticSource : public Source {
public:
  explicit SyntheticSource(uint64_t seed) : seed(seed) {}

  void fill(const InputInfo &input, int64_t first, int64_t count,
            void *out) const override {
    uint64_t key = streamKey(seed, input.name);
    int64_t elements = 1;
    for (int64_t extent : input.shape)
      elements *= extent;
    uint64_t position = uint64_t(first) * uint64_t(elements);
    int64_t n = count * elements;
    if (input.dtype == DType::Float32) {
      auto *values = static_cast<float *>(out);
      for (int64_t i = 0; i < n; ++i)
        values[i] = static_cast<float>(normal(key, position + i));
    } else {
      auto *values = static_cast<int32_t *>(out);
      for (int64_t i = 0; i < n; ++i)
        values[i] =
            static_cast<int32_t>(draw(key, position + i) % input.classes);
    }
  }

private:
  uint64_t seed;
};
} // namespace

std::unique_ptr<Source> syntheticSource(const Plan &plan) {
  for (const InputInfo &input : plan.inputs) {
    elementCount(input.shape);
    if (input.dtype == DType::Int32 &&
        (input.classes < 1 ||
         input.classes > std::numeric_limits<int32_t>::max()))
      throw Error(fmt::format("input '{}' has {} classes; random int32 values "
                              "need between 1 and 2147483647",
                              input.name, input.classes));
  }
  return std::make_unique<SyntheticSource>(plan.training.seed);
}

} // namespace takt::rt
