//===- TransferActions.h - both ends of a transfer ----------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What checking and inserting transfers share.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/File.h"

namespace takt {

inline FileAction make(FileActionKind kind, int32_t stage, int32_t microBatch) {
  FileAction action;
  action.kind = kind;
  action.stage = stage;
  action.microBatch = microBatch;
  return action;
}

inline bool isSend(FileActionKind kind) {
  return kind == FileActionKind::SendF || kind == FileActionKind::SendB;
}

/// The send of what is received, or the receive of what is sent.
inline FileAction otherEnd(const FileAction &a) {
  switch (a.kind) {
  case FileActionKind::SendF:
    return make(FileActionKind::RecvF, a.stage + 1, a.microBatch);
  case FileActionKind::RecvF:
    return make(FileActionKind::SendF, a.stage - 1, a.microBatch);
  case FileActionKind::SendB:
    return make(FileActionKind::RecvB, a.stage - 1, a.microBatch);
  default:
    return make(FileActionKind::SendB, a.stage + 1, a.microBatch);
  }
}

/// The part of `verifyFile` on transfers and reductions; the compute actions
/// are already right.
bool checkTransfers(const ScheduleFile &file,
                    const std::vector<int32_t> &rankOf, Diagnostics &diags);

} // namespace takt
