//===- processes.h - mailboxes of one rank among processes ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Connects a process with those its rank exchanges messages with: by shared
// memory where they are on one node, by TCP otherwise.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/session.h"
#include "takt-rt/transport/exchange.h"

#include <memory>
#include <string>

namespace takt::rt {

enum class TransportKind : uint8_t {
  Auto,         ///< shared memory within a node, TCP across
  SharedMemory, ///< refused unless all ranks are on one node
  Tcp,
};

struct ProcessExchange {
  std::unique_ptr<Exchange> exchange;
  std::string summary; ///< "2 ranks by shared memory, 1 by TCP"
};

/// Makes the mailboxes of the session's rank; returns when all its peers have
/// done so. Throws `Error`: DoesNotFit when there is no shared memory, Timeout
/// that names the missing ranks.
ProcessExchange connectProcesses(const Plan &plan, Session &session,
                                 TransportKind kind);

} // namespace takt::rt
