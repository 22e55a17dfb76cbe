//===- units.cpp - times and sizes for people -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// `{:.4g}` drops trailing zeros, which keeps round numbers round.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/units.h"

#include <fmt/format.h>

#include <cmath>

namespace takt::rt {

/// Four significant digits without an exponent.
static std::string digits(double value) {
  return std::fabs(value) < 9999.5 ? fmt::format("{:.4g}", value)
                                   : fmt::format("{:.0f}", value);
}

template <size_t N>
static std::string scaled(int64_t value, double base,
                          const char *const (&units)[N]) {
  double number = static_cast<double>(value);
  size_t unit = 0;
  while (unit + 1 < N && std::fabs(number) >= base) {
    number /= base;
    ++unit;
  }
  return digits(number) + " " + units[unit];
}

std::string formatNanos(Nanos time) {
  static constexpr const char *kUnits[] = {"ns", "us", "ms", "s"};
  return scaled(time, 1000, kUnits);
}

std::string formatBytes(Bytes bytes) {
  static constexpr const char *kUnits[] = {"B",   "KiB", "MiB",
                                           "GiB", "TiB", "PiB"};
  return scaled(bytes, 1024, kUnits);
}

std::string formatShare(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string formatRanges(const std::vector<int32_t> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1)
      text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

} // namespace takt::rt
