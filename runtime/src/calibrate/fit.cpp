//===- fit.cpp - latency and bandwidth of a link --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Two unknowns: the normal equations, solved directly.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/fit.h"

#include "takt-rt/core/error.h"

#include <algorithm>
#include <cmath>

namespace takt::rt {

namespace {
struct Line {
  double latency = 0, perByte = 0;

  double relativeError(const TransferTime &time) const {
    return (latency + perByte * double(time.bytes)) / time.nanos - 1;
  }
};

/// Least squares of weight[i] * (latency / t[i] + perByte * n[i] / t[i] - 1)^2.
Line solve(const std::vector<TransferTime> &times,
           const std::vector<double> &weights) {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    double a = 1 / times[i].nanos, b = double(times[i].bytes) / times[i].nanos;
    aa += weights[i] * a * a;
    ab += weights[i] * a * b;
    bb += weights[i] * b * b;
    a1 += weights[i] * a;
    b1 += weights[i] * b;
  }
  double det = aa * bb - ab * ab;
  Line line;
  if (det > 0) {
    line.latency = (a1 * bb - b1 * ab) / det;
    line.perByte = (aa * b1 - ab * a1) / det;
  }
  // No message arrives before it is sent.
  if (line.latency < 0)
    line = {0, bb > 0 ? b1 / bb : 0};
  return line;
}

double medianError(const Line &line, const std::vector<TransferTime> &times) {
  std::vector<double> errors;
  for (const TransferTime &time : times)
    errors.push_back(std::abs(line.relativeError(time)));
  return median(errors);
}
} // namespace

double median(std::vector<double> &values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

LinkFit fitLink(const std::vector<TransferTime> &times) {
  Bytes least = INT64_MAX, most = 0;
  for (const TransferTime &time : times) {
    if (!(time.nanos > 0) || !std::isfinite(time.nanos) || time.bytes < 0)
      throw Error("a link cannot be fitted to a time that is not positive");
    least = std::min(least, time.bytes);
    most = std::max(most, time.bytes);
  }
  if (times.size() < 2 || least == most)
    throw Error("a link cannot be fitted to fewer than two sizes");
  constexpr int kRounds = 20;
  constexpr double kCore = 1.345;  // of Huber's weights, in deviations
  constexpr double kScale = 1.483; // deviations a median error, if normal
  std::vector<double> weights(times.size(), 1);
  Line line = solve(times, weights);
  for (int round = 0; round < kRounds; ++round) {
    // Nothing to gain below what a clock can tell.
    double core = kCore * kScale * std::max(medianError(line, times), 1e-6);
    for (size_t i = 0; i < times.size(); ++i)
      weights[i] = std::min(1.0, core / std::abs(line.relativeError(times[i])));
    line = solve(times, weights);
  }
  if (!(line.perByte > 0))
    throw Error("a link cannot be fitted: larger messages take no longer");
  return {line.latency, 1e9 / line.perByte, medianError(line, times)};
}

} // namespace takt::rt
