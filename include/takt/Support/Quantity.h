//===- Quantity.h - numbers with units --------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The quantities that people write: "3 us", "80 GiB", "25 GB/s", "312 TFLOP/s".
// Times and sizes become whole nanoseconds and bytes by exact decimal
// arithmetic (rounded to the nearest where the text names a fraction of one),
// rates become doubles. K, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of 1024.
// Formatting and parsing do not depend on the locale.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace takt {

enum class UnitKind {
  Time,  ///< nanoseconds: ns us ms s
  Bytes, ///< bytes: B KB MB GB TB KiB MiB GiB TiB
  Rate,  ///< bytes a second: B/s ... TiB/s, Mbit/s Gbit/s Tbit/s
  Flops, ///< operations a second: FLOP/s MFLOP/s GFLOP/s TFLOP/s PFLOP/s
};

/// A value, or one sentence that says what is wrong with the text.
template <typename T>
struct Parsed {
  T value{};
  std::string error; ///< empty when fine
  explicit operator bool() const { return error.empty(); }
};

/// A decimal number, an optional blank, a unit of the right kind. Refused: no
/// unit, a unit of another kind, a negative or non-finite number, more than 24
/// digits, a value beyond int64 (or double), a value above 0 that rounds to 0.
Parsed<int64_t> parseTime(std::string_view text);
Parsed<int64_t> parseBytes(std::string_view text);
Parsed<double> parseRate(std::string_view text);
Parsed<double> parseFlops(std::string_view text);

/// Units of a kind in ascending order, as `parse...` knows them.
std::vector<std::string> unitNames(UnitKind kind);

/// For people: the largest fitting unit and four significant digits, such as
/// "1.235 ms", "80 GiB" (sizes in powers of 1024), "450 GB/s", "312 TFLOP/s".
std::string formatTime(int64_t nanos);
std::string formatBytes(int64_t bytes);
std::string formatRate(double bytesPerSecond);
std::string formatFlops(double flopsPerSecond);

/// For files: exact, and read back as the same number ("3.4 ms", "384 MB").
std::string exactTime(int64_t nanos);
std::string exactBytes(int64_t bytes);

} // namespace takt
