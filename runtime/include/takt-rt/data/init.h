//===- init.h - first values of parameters ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// First values of parameters by global name, so that every cut of a model
// starts from the same weights.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <vector>

namespace takt::rt {

/// The values of a parameter, row-major. With key = streamKey(seed, param.name)
/// (data/random.h) and s = initScale, element i is
///   Zeros 0; Ones 1; Normal s normal(key, i); Uniform s (2 uniform(key, i) -
///   1)
/// rounded from double to float.
std::vector<float> initParam(const Param &param, uint64_t seed);

/// Product of a shape; throws `Error` when negative or beyond int64.
int64_t elementCount(const std::vector<int64_t> &shape);

} // namespace takt::rt
