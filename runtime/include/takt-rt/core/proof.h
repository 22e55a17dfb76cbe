//===- proof.h - why a plan may be run --------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the proof shows of a plan, in this order:
//
//   structure     `checkStructure` holds, no rank sends to itself, a device has
//                 one rank
//   matching      the n-th receive of a channel takes the n-th send, both of
//                 one micro-batch and size; reductions have all their members
//   order         one total order of launches exists that the lanes and waits
//                 of every rank follow, over all channels and groups: NCCL's
//                 rule, and enough against deadlock, since the earliest
//                 unfinished launch always has all its participants waiting
//   completeness  every micro-batch passes every stage forward once and
//                 backward once (B, or I and W), nothing is done twice, every
//                 layer's kernels run once a micro-batch and take the whole
//                 gradient by the chain rule, every gradient of every use,
//                 replica and stage is in the update, each parameter is updated
//                 once and every accumulator left at zero
//   stale-read    every read sees the bytes that its own micro-batch wrote
//                 last, in the order F, B or F, I, W, whatever the timing
//   lifetime      nothing is overwritten while a reader may still come (a
//                 slot is reused only against a credit: a wait for its last
//                 reader)
//   capacity      arenas fit their devices
//
// All of it is by role. A cycle among ranks maps to a cycle among their roles,
// so an order of the roles' instructions is an order of the ranks', whatever
// the replica counts. Memory is a rank's own, so lanes and waits of one rank
// decide it; only where these do not suffice are the messages followed, and
// then over ranks, for every replica whose neighbours differ.
//
// The certificate is a number an instruction: its place in the total order,
// equal for the two ends of a message. With it, order is checked by one
// comparison an edge, and memory in one pass over each role; every other rule
// is checked as without. A certificate is only a hint where to look: a plan
// that does not hold is refused whatever certificate it carries.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/interpreter.h"
#include "takt-rt/core/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

enum class ProofRule : uint8_t {
  Structure,
  Matching,
  Order,
  Completeness,
  StaleRead,
  Lifetime,
  Capacity,
  MixedStreams, ///< a warning: correct, but slow under NCCL
  Figures,      ///< a warning: the plan says what is not so of itself
};

/// "structure", "matching", ..., "stale-read", "mixed-streams",
/// "figures".
const char *ruleName(ProofRule rule);

/// One of the instructions that a failure is about. Of one that is not there
/// the action is "(no 1F3)" and the index the length of the lane it belongs on.
struct ProofEnd {
  int32_t rank = 0; ///< the first of the role
  std::string role;
  std::string lane;
  uint32_t instr = 0; ///< index in the lane
  std::string action; ///< "1RECV_F3"
  /// Under the virtual clock, if the plan runs to its end there.
  std::optional<Nanos> begin, end;
};

struct ProofFailure {
  ProofRule rule = ProofRule::Structure;
  std::string text;           ///< one sentence
  std::vector<ProofEnd> ends; ///< two where two are at odds; may be empty
  /// Of a deadlock: every instruction of the circle.
  std::vector<ProofEnd> circle;
};

struct Proof {
  int64_t actions = 0;  ///< instructions of all ranks
  int64_t messages = 0; ///< pieces between two ranks, and reductions
  int32_t ranks = 0;
  std::optional<ProofFailure> failure;
  std::vector<ProofFailure> warnings;
  /// `checkCertificate` needed nothing but the certificate.
  bool byCertificate = false;
  bool holds() const { return !failure; }
};

/// Proves a plan, which need not have passed `checkStructure`.
Proof prove(const Plan &plan);

/// Proves a plan and, where that succeeds, writes the certificate into it.
Proof certify(Plan &plan);

/// Checks every rule on a sound plan (`checkStructure`) with the certificate it
/// carries, which must be there: `hasCertificate`. Takes a fraction of the time
/// of `prove` where the plan holds, and is refused where the plan or the
/// certificate is wrong.
Proof checkCertificate(const Plan &plan);
bool hasCertificate(const Plan &plan);

/// Where what the plan states of itself is not so: the predicted step against
/// the virtual clock, the bound against the objective, micro-batches in flight
/// against the calls, live bytes against what lives in any case and the arena.
/// The plan must be proven.
std::vector<ProofFailure> checkFigures(const Plan &plan);

/// What holds up a run that no longer moves, in the terms of the proof: the two
/// instructions that the lanes' counts show to be in the wrong order, or the
/// messages that do not match. Nothing if the run is not stuck, or in a call.
/// `ranks[r]` is the interpreter of rank r.
std::optional<ProofFailure>
explainStuck(const Plan &plan, const std::vector<const Interpreter *> &ranks);

/// "proved: 96 actions, 24 messages, 2 ranks", or the failure and its ends, a
/// line each, and of a deadlock the circle; warnings follow.
std::string proofText(const Proof &proof);

/// One JSON object with the keys "proof", "holds", "actions", "messages",
/// "ranks", "failure" (null, or "rule", "text", "ends", "circle") and
/// "warnings"; an end has "rank", "role", "lane", "instruction", "action",
/// "begin_ns" and "end_ns", the last two null where not known.
std::string proofJson(const Proof &proof);

/// Throws `Error(BadInput)` with the text of a failed proof; `name` stands
/// before it.
void requireProof(const Proof &proof, const std::string &name);

} // namespace takt::rt
