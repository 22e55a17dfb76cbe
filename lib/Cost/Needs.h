//===- Needs.h - which phases of a layer have work ----------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A frozen layer has no weight gradient, a frozen prefix no backward at all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"

namespace takt {

struct PhaseNeeds {
  bool inputGrad = false;
  bool weightGrad = false;
  bool update = false;
};

/// `needsGrad` is valuesNeedingGrad(graph).
inline PhaseNeeds phaseNeeds(const Graph &graph, const Layer &layer,
                             const std::vector<bool> &needsGrad) {
  PhaseNeeds needs;
  for (int32_t id : layer.inputs)
    needs.inputGrad = needs.inputGrad || needsGrad[id];
  for (int32_t param : layer.params)
    needs.update = needs.update || graph.params[param].trainable;
  bool profiled = layer.kind == LayerKind::Profiled;
  needs.weightGrad = needs.update || profiled;
  needs.update = needs.update || (profiled && layer.profiled.parameters > 0);
  return needs;
}

} // namespace takt
