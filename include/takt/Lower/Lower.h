//===- Lower.h - from stages and actions to a plan -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The last step of compilation, on plain structs: stages, roles, channels,
// groups and one ordered action list a lane become procedures, pools with
// offsets from liveness, and instructions with `(lane, count)` waits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"
#include "takt/Schedule/Schedule.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace takt {

/// Actions of the communication level; the text form is in quotes.
enum class CommKind : uint8_t {
  Compute, ///< "0F3", "0B3", "0I3", "0W3"; piece 1 of "0B3" is "0B3.1"
  Load,    ///< "0LOAD3": inputs of all stages of the role that begins with 0
  SendF,   ///< "0SEND_F3": activation of micro-batch 3 to the next stage
  RecvF,   ///< "1RECV_F3"
  SendB,   ///< "1SEND_B3": gradient to the previous stage
  RecvB,   ///< "0RECV_B3"
  Reduce,  ///< "0REDUCE_GRAD": data-parallel all-reduce; of bucket 1 of
           ///< several "0REDUCE_GRAD1"
  TieSum,  ///< "0TIE_SUM0": add the uses of tied parameter 0 by this stage
           ///< and those of its role that follow it (see TieRun)
  TieSend, ///< "0TIE_SEND0_1": partial or final sum of tie 0 to stage 1
  TieRecv, ///< "1TIE_RECV0_0": from stage 0
  Update,  ///< "0UPDATE": of the parameters whose first use in the role is
           ///< this stage's
};

struct CommAction {
  CommKind kind = CommKind::Compute;
  int32_t stage = 0;
  ActionKind compute = ActionKind::F; ///< when kind is Compute
  int32_t microBatch = -1;            ///< Compute, Load, Send, Recv
  int32_t tie = -1;                   ///< TieSum, TieSend, TieRecv
  int32_t peer = -1;                  ///< TieSend, TieRecv: the other stage
  int32_t part = -1; ///< Compute: piece; Reduce: bucket; -1: the whole
  /// SendB, Reduce: not the action, but that the next one of the lane waits for
  /// it: "1WAIT_SEND_B3", "1WAIT_REDUCE_GRAD0".
  bool wait = false;
  bool operator==(const CommAction &o) const;
  bool operator!=(const CommAction &o) const { return !(*this == o); }
};
std::string toText(const CommAction &action);
std::optional<CommAction> parseCommAction(const std::string &text);

struct LaneInput {
  rt::LaneKind kind = rt::LaneKind::Compute;
  std::vector<CommAction> actions;
};

/// Times of one layer on one device of its stage.
struct StageLayerTimes {
  Nanos forward = 0, inputGrad = 0, weightGrad = 0, update = 0;
};

struct StageInput {
  int32_t layerBegin = 0, layerEnd = 0; ///< Graph layers [begin, end)
  std::vector<StageLayerTimes> times;   ///< one a layer of the stage
  /// First layer of each gradient bucket, descending to `layerBegin`: bucket 0
  /// holds the last layers, whose gradients are ready first. Empty: one bucket.
  /// With several, the last action that makes gradients is cut into as many
  /// pieces, and bucket k may be reduced once piece k has run.
  std::vector<int32_t> bucketBegins;
};

/// What a group of ranks does: replicas that run the same stages. What passes
/// between neighbouring stages of one role stays in the rank's memory.
struct RoleInput {
  std::vector<int32_t> stages; ///< ascending
  int32_t replicas = 1;
  std::vector<int32_t> devices; ///< one a replica
  Bytes capacity = 0;           ///< of each device; 0 = unknown
  rt::Link groupLink;           ///< of the all-reduce among the replicas
  std::vector<LaneInput> lanes; ///< the order of everything this role does
};

/// A trainable parameter with several uses. Each use has its own accumulator;
/// at the end of the step they are added in model order, along the stages that
/// hold the parameter, and the sum is sent back to all of them: the same bits
/// whatever the cut.
struct TieInput {
  int32_t param = 0;           ///< index into Graph::params
  std::vector<int32_t> stages; ///< ascending; one if all uses lie together
};

struct LoweringProblem {
  std::string cluster, compiler, inputHash, schedule, costSource;
  Graph graph; ///< layers in the order of the stages
  /// The model's number of each layer; empty: the same. Plans list the layers as
  /// the model has them, whatever the stages.
  std::vector<int32_t> layerNumbers;
  rt::Training training;
  std::vector<StageInput> stages;
  std::vector<RoleInput> roles; ///< every stage in one of them
  /// Between stage s and s + 1; not asked where one role has both.
  std::vector<rt::Link> boundaryLinks;
  std::vector<TieInput> ties;
  std::vector<rt::Link> tieLinks; ///< slowest link of each tie
  /// What the devices share; covers those of all stages, or is empty.
  std::vector<rt::NodeResources> resources;

  std::optional<std::string> check() const;
  /// By stage; the stages of every role must be in range.
  std::vector<int32_t> roleOfStage() const;
};

/// Bytes of gradients that each layer of a stage accumulates, as they lie in
/// the pool: padded to the alignment, frozen parameters left out.
std::vector<Bytes> gradientBytes(const Graph &graph, const StageInput &stage);

/// Buckets of a stage (1 or more), the bucket of a layer, and the bytes of
/// each.
int32_t bucketCount(const StageInput &stage);
int32_t bucketOf(const StageInput &stage, int32_t layer);
std::vector<Bytes> bucketBytes(const Graph &graph, const StageInput &stage);

/// Cuts the gradients of a stage that has one all-reduce into two or more
/// buckets: the stage's last action that makes gradients comes in pieces, and
/// the all-reduces take the place of the one, on a lane of the role for each
/// list of `order` (buckets in the order of their launch; empty: one lane,
/// first ready first).
void cutIntoBuckets(LoweringProblem &problem, int32_t stage,
                    std::vector<int32_t> begins,
                    std::vector<std::vector<int32_t>> order = {});

/// Sets the send of a gradient and the all-reduces of a role of one stage in
/// order where they share a link: the send waits for bucket `before`, bucket
/// `after` for the send (-1: neither; the one all-reduce of a whole stage is bucket 0). Only the
/// last send may wait: nothing on its stage waits for that one but such
/// buckets, so that no order of the two can close a circle over other stages.
void orderSend(RoleInput &role, int32_t microBatch, int32_t before,
               int32_t after);

/// What is wrong with the waits of a role's lanes.
std::optional<std::string> checkWaits(const RoleInput &role);
/// Uses of a tied parameter that follow one another on one role: added up
/// without a message in between.
struct TieRun {
  int32_t role = 0;
  std::vector<int32_t> stages; ///< ascending
};
std::vector<TieRun> tieRuns(const TieInput &tie,
                            const std::vector<int32_t> &roleOfStage);

/// The last phase (0 forward, 1 input gradient, 2 weight gradient; backward that
/// is not split counts as 1) in which a stage needs what crosses its ends; -1:
/// there is no such message.
struct MessageLives {
  int8_t input = -1, output = -1;         ///< activations
  int8_t outputGrad = -1, inputGrad = -1; ///< gradients
};
/// `split`: some action of the stage is I or W. Lanes are not read.
MessageLives messageLives(const LoweringProblem &problem, int32_t stage,
                          bool split);

/// The ties of a cut into layer ranges, by ascending parameter.
std::vector<TieInput>
findTies(const Graph &graph,
         const std::vector<std::pair<int32_t, int32_t>> &layerRanges);

/// The plan, without predicted times (the virtual clock gives those). The
/// problem must pass `check()`; the plan passes `rt::checkStructure`.
rt::Plan lower(const LoweringProblem &problem);

/// Adds to a compute schedule, whose list r is what role r does, all that it
/// needs to run: loads, transfers between stages of different roles, the
/// all-reduce of each stage of replicated roles, tied sums, the updates. Fills
/// `lanes` of every role; gradients are reduced by the buckets that the stages
/// name, in the order in which they become ready. Messages of a channel are sent
/// and received in the order in which their producer makes them, on lanes of
/// their own.
void insertCommunication(LoweringProblem &problem, const Schedule &schedule);

} // namespace takt
