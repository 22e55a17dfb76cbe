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
Schedule generateRoundRobin(const PipelineProblem &problem);
Schedule generateContinuous(const PipelineProblem &problem);
std::optional<std::string> refuseShortSteps(const PipelineProblem &problem);
Schedule generateEarlyBackwardA(const PipelineProblem &problem);
Schedule generateEarlyBackwardB(const PipelineProblem &problem);
Schedule generateInterleaved(const PipelineProblem &problem);
Schedule generateBreadthFirst(const PipelineProblem &problem);
Schedule generateGroupBackward(const PipelineProblem &problem);
Schedule generateDualPipe(const PipelineProblem &problem);
std::optional<std::string> refuseOddRanks(const PipelineProblem &problem);
Schedule generateDualPipeV(const PipelineProblem &problem);

} // namespace takt
