//===- Families.h - the generators behind the registry ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Pipeline.h"

namespace takt {

/// Lists stay empty where a family has no order within the limits.
Schedule generateGPipeFamily(const PipelineProblem &problem);
Schedule generateOneFOneBFamily(const PipelineProblem &problem);
Schedule generateZeroBubbleH1(const PipelineProblem &problem);
Schedule generateZeroBubbleH2(const PipelineProblem &problem);
Schedule generateZeroBubbleAuto(const PipelineProblem &problem);
Schedule generateZeroBubbleV(const PipelineProblem &problem);
Schedule generateVHalf(const PipelineProblem &problem);
Schedule generateVMin(const PipelineProblem &problem);
Schedule generateZeroBubbleInterleaved(const PipelineProblem &problem);

} // namespace takt
