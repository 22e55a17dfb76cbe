//===- init.cpp - first values of parameters ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Draws the first values of a parameter from its own stream.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/data/init.h"

#include "takt-rt/core/error.h"
#include "takt-rt/data/random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace takt::rt {

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      throw Error(fmt::format("shape [{}] has no usable number of elements",
                              fmt::join(shape, ", ")));
  return count;
}

std::vector<float> initParam(const Param &param, uint64_t seed) {
  std::vector<float> values(elementCount(param.shape));
  uint64_t key = streamKey(seed, param.name);
  double scale = param.initScale;
  switch (param.init) {
  case InitKind::Zeros:
    break;
  case InitKind::Ones:
    values.assign(values.size(), 1.0f);
    break;
  case InitKind::Normal:
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(scale * normal(key, i));
    break;
  case InitKind::Uniform:
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(scale * (2 * uniform(key, i) - 1));
    break;
  }
  return values;
}

} // namespace takt::rt
