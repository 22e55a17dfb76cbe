//===- File.h - schedule files: PyTorch's pipelining CSV ----------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A schedule as PyTorch's pipelining runtime keeps it in a file: a row a rank,
// its cells the actions in their order, an empty cell an idle slot.
//
//   0F0,0F1,,0B0,0B1                                     compute only
//   0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0 ...           with communication
//   (1F0;0B2)OVERLAP_F_B                                 two at once
//   0SEND_F0 ... 0WAIT_SEND_F0                           newer: sends end here
//
// All spellings that PyTorch has written are read: `1F0` with kinds F, I, W and
// B; the older `1B0` for the input gradient where the same row has `1W0`, with
// `1BW0` for both; `1SEND_B0_2RECV_F3` for two transfers at once; and `F0_s1`.
// The current spelling is written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Schedule.h"
#include "takt/Support/Diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

enum class FileActionKind : uint8_t {
  F,
  I,
  W,
  B,
  SendF,
  RecvF,
  SendB,
  RecvB,
  WaitSendF, ///< the send of this stage and micro-batch is over
  WaitSendB,
  Unshard, ///< this and the rest: of a stage, without micro-batch
  Reshard,
  ReduceGrad,
  WaitReduceGrad,
};

/// One action of a row and where it stands in the text.
struct FileAction {
  FileActionKind kind = FileActionKind::F;
  int32_t stage = 0;
  int32_t microBatch = -1; ///< -1: of the stage as a whole
  /// Issued together with the next action of the row.
  bool withNext = false;
  int32_t line = 0, column = 0; ///< from 1; 0: made, not read

  bool isCompute() const { return kind <= FileActionKind::B; }
  bool isTransfer() const {
    return kind >= FileActionKind::SendF && kind <= FileActionKind::RecvB;
  }
  bool isWait() const {
    return kind == FileActionKind::WaitSendF ||
           kind == FileActionKind::WaitSendB;
  }
};

/// "2F0", "2SEND_F0", "2REDUCE_GRAD".
std::string toText(const FileAction &action);

struct ScheduleFile {
  std::string name; ///< of the file, for messages
  /// The largest numbers that a compute action names, and one.
  int32_t stages = 0, microBatches = 0;
  std::vector<std::vector<FileAction>> rows; ///< by rank

  bool hasTransfers() const;
};

/// Reads a CSV. Every fault goes to `diags` with line and column; nothing is
/// returned if there was one. Sizes are bounded by what the text spells out: a
/// file that names a large stage or micro-batch must list all below it.
std::optional<ScheduleFile>
parseScheduleCsv(const std::string &file, std::string text, Diagnostics &diags);

/// Whether what a user gives as a schedule is a file: generators' names have
/// neither dot nor slash.
bool namesScheduleFile(const std::string &schedule);

/// Whether such a file states rules (Language.h): its name ends in .yaml or .yml.
bool isScheduleRule(const std::string &file);

/// What a schedule of a file is called in plans and pictures: the file's name
/// without folders, in printable ASCII ('?' for the rest), at most 200 bytes.
std::string scheduleName(const std::string &file);

/// The compute actions of every row. The older spelling is already resolved.
Schedule computeSchedule(const ScheduleFile &file);

/// Rank of every stage; -1 for a stage that no row computes.
std::vector<int32_t> rankOfStage(const Schedule &schedule, int32_t stages);

/// `verify` on the compute actions; then, if the file has transfers, that they
/// are the ones this placement needs: each value sent once after it is made
/// and received once before it is used, in the same order at both ends, none
/// between stages of one rank, and the rows run to their end when an action
/// waits for the send of what it uses. Reports the action that breaks it at its
/// place. Rows whose order of messages between two ranks differs over several
/// boundaries get a warning: NCCL matches messages of a pair in order.
bool verifyFile(const ScheduleFile &file, Diagnostics &diags);

/// The first stage whose gradients do not add up in the order of micro-batches,
/// and the action that comes out of turn; nothing if all do. Sums of floats in
/// another order differ in their last bits.
std::optional<Action> firstOutOfTurn(const Schedule &schedule);

/// The schedule as a file, compute only.
ScheduleFile toFile(const ScheduleProblem &problem, const Schedule &schedule);

/// Adds sends and receives to a valid compute-only file: a send behind the
/// action that makes the value, the receive in the row of the other end as it
/// stands at that moment when all rows advance in turn. Both ends of a pair of
/// ranks so see their messages in one order.
ScheduleFile insertTransfers(const ScheduleFile &file);

/// Adds to a file with transfers the ends of its sends, which PyTorch asks for
/// since it knows WAIT_SEND: of an activation before the backward of the same
/// micro-batch, whose gradient can only come once it was received; of a
/// gradient at the end of the row.
ScheduleFile insertSendWaits(const ScheduleFile &file);

/// CSV in PyTorch's current spelling, a line a rank.
std::string writeScheduleCsv(const ScheduleFile &file);

} // namespace takt
