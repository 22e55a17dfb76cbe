//===- units.h - times and sizes for people ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The largest unit that leaves at least one before the point, at most four
// significant digits, independent of the locale.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::rt {

/// "950 ns", "12.3 us", "4.567 ms", "1.2 s".
std::string formatNanos(Nanos time);

/// "512 B", "1.5 KiB", "80 GiB".
std::string formatBytes(Bytes bytes);

/// "12.5 %" of a share of one.
std::string formatShare(double share);

/// "0-3, 8" for ascending runs of numbers.
std::string formatRanges(const std::vector<int32_t> &numbers);

} // namespace takt::rt
