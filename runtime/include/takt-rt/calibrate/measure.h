//===- measure.h - what links and processors of this machine do -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Times of real messages over the transports that training uses, and rates of
// the kernels it runs, on one thread as a rank has.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/calibrate/fit.h"
#include "takt-rt/transport/team.h"

#include <vector>

namespace takt::rt {

/// A plan that trains nothing: `ranks` roles of one rank, with a channel from
/// rank 0 to every other and one back. For mailboxes that carry messages of
/// the sizes below.
Plan messagePlan(int32_t ranks);

/// Bytes of the messages that are measured, ascending.
const std::vector<Bytes> &messageSizes();

/// One end of a measurement between rank 0 and `peer`, whose two ranks call it
/// at the same time: messages of every size go to the peer and back. Half of
/// the median time there and back is what rank 0 gets; the peer gets nothing.
/// `ranksHere`: ranks that share the cores of this machine, as training polls
/// or sleeps by it. Throws what `interrupt` has, and `Error` (Timeout).
std::vector<TransferTime> exchangeMessages(Exchange &exchange, int32_t rank,
                                           int32_t peer, int32_t ranksHere,
                                           const Interrupt &interrupt);

/// The same between two threads of this process.
std::vector<TransferTime> exchangeBetweenThreads();

struct DeviceRates {
  double flops = 0;          ///< a second, of products of fp32 matrices
  double bytesPerSecond = 0; ///< of a copy, read and written
};

DeviceRates measureDevice();

/// Cores that this process may use.
int32_t coresHere();
/// Main memory of this machine.
Bytes memoryHere();

} // namespace takt::rt
