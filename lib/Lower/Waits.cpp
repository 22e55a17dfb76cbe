//===- Waits.cpp - sends and all-reduces set in order ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A send and an all-reduce that share a link slow each other down; a wait of
// one for the other gives the whole link to the first. All-reduces depend on
// nothing but their pieces, and the last gradient that a stage sends is waited
// for by other stages only, which send nothing back: the waits that are allowed
// close no circle.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/Lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

using namespace takt;
using rt::LaneKind;

/// Bucket of an all-reduce; the one of a whole stage is bucket 0.
static int32_t bucketOfReduce(const CommAction &action) {
  return std::max(action.part, 0);
}

void takt::orderSend(RoleInput &role, int32_t microBatch, int32_t before,
                     int32_t after) {
  auto find = [&](LaneKind kind, auto matches) -> const CommAction * {
    for (const LaneInput &lane : role.lanes)
      for (const CommAction &a : lane.actions)
        if (lane.kind == kind && !a.wait && matches(a))
          return &a;
    return nullptr;
  };
  auto putBefore = [&](LaneKind kind, const CommAction &at, CommAction wait) {
    wait.wait = true;
    for (LaneInput &lane : role.lanes) {
      auto place = std::find(lane.actions.begin(), lane.actions.end(), at);
      if (lane.kind == kind && place != lane.actions.end()) {
        lane.actions.insert(place, wait);
        return;
      }
    }
  };
  auto isBucket = [](int32_t bucket) {
    return
        [bucket](const CommAction &a) { return bucketOfReduce(a) == bucket; };
  };
  const CommAction *found = find(LaneKind::SendGrad, [&](const CommAction &a) {
    return a.microBatch == microBatch;
  });
  if (!found)
    return;
  const CommAction send = *found;
  if (const CommAction *reduce = find(LaneKind::Reduce, isBucket(before)))
    putBefore(LaneKind::SendGrad, send, *reduce);
  if (const CommAction *reduce = find(LaneKind::Reduce, isBucket(after)))
    putBefore(LaneKind::Reduce, CommAction(*reduce), send);
}

std::optional<std::string> takt::checkWaits(const RoleInput &role) {
  const int32_t index = role.stages.front();
  for (const LaneInput &lane : role.lanes)
    for (const CommAction &a : lane.actions)
      if (a.wait && role.stages.size() > 1)
        return fmt::format("stage {}: '{}' stands on a role of several stages, "
                           "whose sends other stages of it may wait for",
                           a.stage, toText(a));
  std::set<int32_t> buckets, sends;
  int32_t lastSend = -1;
  for (const LaneInput &lane : role.lanes)
    for (const CommAction &a : lane.actions) {
      if (a.wait)
        continue;
      if (lane.kind == LaneKind::Reduce)
        buckets.insert(bucketOfReduce(a));
      if (lane.kind == LaneKind::SendGrad)
        sends.insert(lastSend = a.microBatch);
    }
  std::set<int32_t> first;  // buckets that the last send waits for
  std::set<int32_t> behind; // buckets that come after it
  for (const LaneInput &lane : role.lanes) {
    bool waits = false; // for the last send, so far
    for (size_t i = 0; i < lane.actions.size(); ++i) {
      const CommAction &a = lane.actions[i];
      if (!a.wait) {
        if (waits && lane.kind == LaneKind::Reduce)
          behind.insert(bucketOfReduce(a));
        continue;
      }
      bool forSend = lane.kind == LaneKind::Reduce && a.kind == CommKind::SendB;
      bool forBucket =
          lane.kind == LaneKind::SendGrad && a.kind == CommKind::Reduce;
      if (!forSend && !forBucket)
        return fmt::format(
            "stage {}: '{}' stands on a lane where nothing waits "
            "for that",
            index, toText(a));
      if (forSend ? !sends.count(a.microBatch)
                  : !buckets.count(bucketOfReduce(a)))
        return fmt::format("stage {}: '{}' names an action that the stage does "
                           "not have",
                           index, toText(a));
      auto next = std::find_if(lane.actions.begin() + i, lane.actions.end(),
                               [](const CommAction &b) { return !b.wait; });
      if (next == lane.actions.end())
        return fmt::format("stage {}: nothing follows '{}'", index, toText(a));
      if (forBucket && next->microBatch != lastSend)
        return fmt::format("stage {}: '{}' stands before '{}', only the last "
                           "send may wait for an all-reduce",
                           index, toText(a), toText(*next));
      if (forBucket)
        first.insert(bucketOfReduce(a));
      waits = waits || (forSend && a.microBatch == lastSend);
    }
  }
  for (int32_t bucket : first)
    if (behind.count(bucket))
      return fmt::format("stage {}: the last send waits for bucket {}, which "
                         "comes after it",
                         index, bucket);
  return std::nullopt;
}
