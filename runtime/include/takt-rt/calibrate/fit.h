//===- fit.h - latency and bandwidth of a link ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A transfer of n bytes takes alpha + n / beta (Hockney 1994, doi
// 10.1016/S0167-8191(06)80021-9). Times are fitted by least squares on relative
// errors, so that small messages count as much as large ones, and again with
// weights that fall with the error (Huber 1964, doi 10.1214/aoms/1177703732),
// so that a message that another program held up does not bend the line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <vector>

namespace takt::rt {

struct TransferTime {
  Bytes bytes = 0;
  double nanos = 0;
};

struct LinkFit {
  double latencyNanos = 0;   ///< at least 0
  double bytesPerSecond = 0; ///< more than 0
  double error = 0;          ///< median of |fitted / measured - 1|

  double nanos(Bytes bytes) const {
    return latencyNanos + double(bytes) * 1e9 / bytesPerSecond;
  }
};

/// Throws `Error` (BadInput) for a time that is not positive, for fewer than
/// two sizes, and when larger messages do not take longer.
LinkFit fitLink(const std::vector<TransferTime> &times);

/// The middle one of some values, which are left in another order.
double median(std::vector<double> &values);

} // namespace takt::rt
