//===- Families.h - the generators behind the registry ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

#include <algorithm>

namespace takt {

/// Limits are sums of fractions: what exceeds one by rounding alone fits.
inline bool fitsLimit(double held, double limit) {
  return held <= limit + 1e-9 * std::max(1.0, limit);
}

/// Lists stay empty where a family has no order within the limits.
Schedule generateGPipeFamily(const PipelineProblem &problem);
Schedule generateOneFOneBFamily(const PipelineProblem &problem);

} // namespace takt
