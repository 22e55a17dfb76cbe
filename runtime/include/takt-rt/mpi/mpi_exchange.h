//===- mpi_exchange.h - messages by MPI -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For networks that an MPI library knows better than TCP. Optional: built with
// TAKT_ENABLE_MPI. Sends are synchronous ones, which MPI completes once the
// receive has begun; data goes straight from and to the arenas.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/transport/exchange.h"

#include <memory>

namespace takt::rt {

/// The mailboxes of `rank`, which must be this process's rank in
/// MPI_COMM_WORLD. Starts MPI; call once. Throws `Error` (DoesNotFit) when MPI
/// has other ranks than the plan.
std::unique_ptr<Exchange> connectMpi(const Plan &plan, int32_t rank);

} // namespace takt::rt
