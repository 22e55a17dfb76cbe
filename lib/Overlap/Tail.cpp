//===- Tail.cpp - the end of a stage's step -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Forms buckets, and poses what follows the start of a stage's last backward as
// an overlap problem.
//
//===----------------------------------------------------------------------===//
#include "takt/Overlap/Choose.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

std::vector<int32_t> takt::formBuckets(const Graph &graph,
                                       const StageInput &stage, Bytes bytes) {
  std::vector<Bytes> layers = gradientBytes(graph, stage);
  std::vector<int32_t> begins;
  Bytes filled = 0;
  for (int32_t l = stage.layerEnd - 1; l >= stage.layerBegin; --l) {
    filled += layers[l - stage.layerBegin];
    if (filled > 0 && filled >= bytes) {
      begins.push_back(l);
      filled = 0;
    }
  }
  // What is left is a bucket; layers without gradients join the last one.
  if (begins.empty() || filled > 0)
    begins.push_back(stage.layerBegin);
  begins.back() = stage.layerBegin;
  return begins;
}

namespace {

/// Whether B, and not W, is the last action of the stage that makes gradients,
/// and whether the stage has I and W apart.
struct LastAction {
  bool both = true, split = false;
};

LastAction lastAction(const RoleInput &role, int32_t stage) {
  LastAction last;
  for (const LaneInput &lane : role.lanes)
    for (const CommAction &a : lane.actions) {
      if (a.kind != CommKind::Compute || a.stage != stage ||
          a.compute == ActionKind::F)
        continue;
      last.split = last.split || a.compute != ActionKind::B;
      if (a.compute != ActionKind::I)
        last.both = a.compute == ActionKind::B;
    }
  return last;
}

/// After a bucket with gradients of a parameter that several stages hold, the
/// sum goes to the last of them and back.
Nanos tieTail(const LoweringProblem &problem, const StageInput &stage,
              int32_t bucket) {
  Nanos tail = 0;
  for (size_t k = 0; k < problem.ties.size(); ++k) {
    if (problem.ties[k].stages.size() < 2)
      continue;
    int32_t param = problem.ties[k].param;
    Bytes bytes =
        TensorType{problem.graph.params[param].shape, DType::Float32}.bytes();
    for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
      const std::vector<int32_t> &used = problem.graph.layers[l].params;
      if (bucketOf(stage, l) == bucket &&
          std::find(used.begin(), used.end(), param) != used.end())
        tail = std::max(tail, 2 * problem.tieLinks[k].time(bytes));
    }
  }
  return tail;
}

} // namespace

OverlapProblem takt::stageTail(const LoweringProblem &problem, int32_t index,
                               const std::vector<int32_t> &bucketBegins,
                               int32_t lanes, const TailSend *send) {
  StageInput stage = problem.stages[index];
  stage.bucketBegins = bucketBegins;
  int32_t count = bucketCount(stage);
  const RoleInput &role = problem.roles[problem.roleOfStage()[index]];
  LastAction last = lastAction(role, index);
  std::vector<Nanos> pieces(count, 0);
  Nanos update = 0;
  for (int32_t l = stage.layerBegin; l < stage.layerEnd; ++l) {
    const StageLayerTimes &times = stage.times[l - stage.layerBegin];
    int32_t bucket = bucketOf(stage, l);
    pieces[bucket] += times.weightGrad;
    // Lowering runs all of I in the first piece where I and W are apart.
    if (last.both)
      pieces[last.split ? 0 : bucket] += times.inputGrad;
    update += times.update;
  }

  OverlapProblem tail;
  tail.lanes = lanes;
  for (int32_t k = 0; k < count; ++k) {
    OverlapAction piece;
    piece.name = fmt::format("piece {}", k);
    piece.time = pieces[k];
    piece.isCompute = true;
    tail.actions.push_back(std::move(piece));
  }
  OverlapAction finish;
  finish.name = "update";
  finish.time = update;
  finish.isCompute = true;
  std::vector<Bytes> bytes = bucketBytes(problem.graph, stage);
  for (int32_t k = 0; k < count; ++k) {
    OverlapAction reduce;
    reduce.name = fmt::format("bucket {}", k);
    reduce.time = rt::allReduceTime(role.groupLink, role.replicas, bytes[k]);
    reduce.after = {k};
    if (Nanos tied = tieTail(problem, stage, k))
      reduce.tail = tied + update;
    finish.after.push_back(int32_t(tail.actions.size()));
    tail.actions.push_back(std::move(reduce));
  }
  if (send) {
    OverlapAction leave;
    leave.name = "send";
    leave.time = send->time;
    leave.tail = send->tail;
    leave.release = send->release;
    if (send->afterPieces)
      leave.after = {count - 1};
    tail.actions.push_back(std::move(leave));
  }
  tail.actions.push_back(std::move(finish));
  return tail;
}
