//===- Quantity.cpp - numbers with units ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One table of units per kind serves parsing, hints and printing. Integral
// kinds are computed in 128 bits from the digits of the text, so that "0.1 us"
// is 100 ns and "16777217.3 KB" keeps every digit.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/Quantity.h"

#include "takt/Support/Diagnostic.h"
#include "takt/Support/NearestName.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

using namespace takt;

namespace {

__extension__ typedef unsigned __int128 Wide;

struct Unit {
  const char *name;
  double scale; ///< exact: at most 2^40, or a power of ten up to 1e15
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi,
                 kTi = kGi * kKi;

struct KindTable {
  UnitKind kind;
  const char *what;    ///< "a time"
  const char *example; ///< unit suggested for a bare number
  std::vector<Unit> units;
};

const std::vector<KindTable> &tables() {
  static const std::vector<KindTable> all = {
      {UnitKind::Time,
       "a time",
       "us",
       {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}},
      {UnitKind::Bytes,
       "a size in bytes",
       "GiB",
       {{"B", 1},
        {"KB", 1e3},
        {"KiB", kKi},
        {"MB", 1e6},
        {"MiB", kMi},
        {"GB", 1e9},
        {"GiB", kGi},
        {"TB", 1e12},
        {"TiB", kTi}}},
      {UnitKind::Rate,
       "a transfer rate",
       "GB/s",
       {{"B/s", 1},
        {"KB/s", 1e3},
        {"KiB/s", kKi},
        {"Mbit/s", 1e6 / 8},
        {"MB/s", 1e6},
        {"MiB/s", kMi},
        {"Gbit/s", 1e9 / 8},
        {"GB/s", 1e9},
        {"GiB/s", kGi},
        {"Tbit/s", 1e12 / 8},
        {"TB/s", 1e12},
        {"TiB/s", kTi}}},
      {UnitKind::Flops,
       "an arithmetic rate",
       "TFLOP/s",
       {{"FLOP/s", 1},
        {"MFLOP/s", 1e6},
        {"GFLOP/s", 1e9},
        {"TFLOP/s", 1e12},
        {"PFLOP/s", 1e15}}},
  };
  return all;
}

const KindTable &tableOf(UnitKind kind) {
  return tables()[static_cast<std::size_t>(kind)];
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isBlank(char c) { return c == ' ' || c == '\t'; }

/// Length of the decimal number at the start of `text`; 0 if there is none.
std::size_t numberLength(std::string_view text) {
  std::size_t i = 0, digits = 0;
  for (; i < text.size() && isDigit(text[i]); ++i)
    ++digits;
  if (i < text.size() && text[i] == '.')
    for (++i; i < text.size() && isDigit(text[i]); ++i)
      ++digits;
  if (!digits)
    return 0;
  std::size_t j = i;
  if (j < text.size() && (text[j] == 'e' || text[j] == 'E')) {
    ++j;
    if (j < text.size() && (text[j] == '+' || text[j] == '-'))
      ++j;
    if (j < text.size() && isDigit(text[j])) {
      while (j < text.size() && isDigit(text[j]))
        ++j;
      i = j;
    }
  }
  return i;
}

struct Split {
  std::string_view number;
  const Unit *unit = nullptr;
};

/// Separates number and unit and checks both against the kind.
Parsed<Split> split(std::string_view text, UnitKind kind) {
  const KindTable &table = tableOf(kind);
  std::string shown = quotable(text);
  auto fail = [](std::string message) {
    Parsed<Split> result;
    result.error = std::move(message);
    return result;
  };
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back()))
    text.remove_suffix(1);
  bool negative = !text.empty() && text.front() == '-';
  std::string_view rest = text;
  if (negative || (!text.empty() && text.front() == '+'))
    rest.remove_prefix(1);
  std::size_t length = numberLength(rest);
  if (!length)
    return fail(
        fmt::format("'{}' is not {}; write a number and a unit, such as "
                    "'4 {}'",
                    shown, table.what, table.example));
  std::string_view number = rest.substr(0, length);
  std::string_view unit = rest.substr(length);
  while (!unit.empty() && isBlank(unit.front()))
    unit.remove_prefix(1);
  std::string names;
  for (const Unit &u : table.units)
    names += (names.empty() ? "" : ", ") + std::string(u.name);
  if (unit.empty())
    return fail(
        fmt::format("'{}' has no unit; write for example '{} {}' (units: "
                    "{})",
                    shown, quotable(number, 24), table.example, names));
  if (negative)
    return fail(fmt::format("'{}' is negative", shown));
  for (const Unit &u : table.units)
    if (unit == u.name) {
      Parsed<Split> result;
      result.value = {number, &u};
      return result;
    }
  for (const KindTable &other : tables())
    for (const Unit &u : other.units)
      if (unit == u.name)
        return fail(fmt::format("'{}' is {}; {} is needed, such as '4 {}'",
                                shown, other.what, table.what, table.example));
  std::string hint = nearestHint(unit, unitNames(kind));
  return fail(fmt::format("unknown unit '{}' in '{}'{}{}", quotable(unit, 16),
                          shown, hint,
                          hint.empty() ? " (units: " + names + ")" : ""));
}

Parsed<int64_t> parseWhole(std::string_view text, UnitKind kind) {
  Parsed<int64_t> result;
  Parsed<Split> parts = split(text, kind);
  if (!parts) {
    result.error = parts.error;
    return result;
  }
  constexpr int kMaxDigits = 24; // 1e24 * 2^40 fits 128 bits
  constexpr int kMaxExponent = 1000;
  Wide value = 0;
  int digits = 0, exponent = 0;
  bool fraction = false;
  std::string_view number = parts.value.number;
  std::size_t i = 0;
  for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
    if (number[i] == '.') {
      fraction = true;
      continue;
    }
    value = value * 10 + static_cast<unsigned>(number[i] - '0');
    digits += value != 0;
    if (digits > kMaxDigits) {
      result.error = fmt::format("'{}' has too many digits", quotable(text));
      return result;
    }
    exponent -= fraction;
  }
  if (i < number.size()) {
    ++i;
    bool minus = number[i] == '-';
    i += number[i] == '-' || number[i] == '+';
    int written = 0;
    for (; i < number.size(); ++i)
      written = std::min(kMaxExponent, written * 10 + (number[i] - '0'));
    exponent += minus ? -written : written;
  }
  value *= static_cast<uint64_t>(parts.value.unit->scale);
  bool positive = value != 0;
  const Wide limit = std::numeric_limits<int64_t>::max();
  for (; exponent > 0 && value != 0 && value <= limit; --exponent)
    value *= 10;
  // All digits but the last are cut; the last one rounds.
  for (; exponent < -1 && value != 0; ++exponent)
    value /= 10;
  if (exponent < 0)
    value = (value + 5) / 10;
  if (value > limit)
    result.error = fmt::format("'{}' is too large", quotable(text));
  else if (positive && value == 0)
    result.error = fmt::format("'{}' is less than 1 {}", quotable(text),
                               tableOf(kind).units.front().name);
  else
    result.value = static_cast<int64_t>(value);
  return result;
}

Parsed<double> parseReal(std::string_view text, UnitKind kind) {
  Parsed<double> result;
  Parsed<Split> parts = split(text, kind);
  if (!parts) {
    result.error = parts.error;
    return result;
  }
  std::string_view number = parts.value.number;
  auto [end, code] = std::from_chars(
      number.data(), number.data() + number.size(), result.value);
  result.value *= parts.value.unit->scale;
  if (code != std::errc() || end != number.data() + number.size() ||
      !std::isfinite(result.value))
    result.error = fmt::format("'{}' is out of range", quotable(text));
  return result;
}

/// Four significant digits, never an exponent for what people meet.
std::string scaled(double value, const char *unit) {
  return std::fabs(value) >= 1000 ? fmt::format("{:.0f} {}", value, unit)
                                  : fmt::format("{:.4g} {}", value, unit);
}

/// Picks the largest unit not above the value; `binary` skips powers of 1000.
std::string formatKind(double value, UnitKind kind, bool binary) {
  const Unit *best = &tableOf(kind).units.front();
  for (const Unit &unit : tableOf(kind).units) {
    std::string_view name = unit.name;
    bool isBinary = name.size() > 1 && name[1] == 'i';
    bool isBits = name.find("bit") != std::string_view::npos;
    if (unit.scale > 1 && (isBinary != binary || isBits))
      continue;
    if (std::fabs(value) >= unit.scale)
      best = &unit;
  }
  return scaled(value / best->scale, best->name);
}

/// `value / 10^places` with all its digits and no trailing zeros.
std::string decimal(int64_t value, int places) {
  std::string digits = fmt::format("{:0{}}", value, places + 1);
  std::string whole = digits.substr(0, digits.size() - places);
  std::string fraction = digits.substr(digits.size() - places);
  while (!fraction.empty() && fraction.back() == '0')
    fraction.pop_back();
  return fraction.empty() ? whole : whole + "." + fraction;
}

} // namespace

Parsed<int64_t> takt::parseTime(std::string_view text) {
  return parseWhole(text, UnitKind::Time);
}
Parsed<int64_t> takt::parseBytes(std::string_view text) {
  return parseWhole(text, UnitKind::Bytes);
}
Parsed<double> takt::parseRate(std::string_view text) {
  return parseReal(text, UnitKind::Rate);
}
Parsed<double> takt::parseFlops(std::string_view text) {
  return parseReal(text, UnitKind::Flops);
}

std::vector<std::string> takt::unitNames(UnitKind kind) {
  std::vector<std::string> names;
  for (const Unit &unit : tableOf(kind).units)
    names.push_back(unit.name);
  return names;
}

std::string takt::formatTime(int64_t nanos) {
  return formatKind(static_cast<double>(nanos), UnitKind::Time, false);
}
std::string takt::formatBytes(int64_t bytes) {
  return formatKind(static_cast<double>(bytes), UnitKind::Bytes, true);
}
std::string takt::formatRate(double bytesPerSecond) {
  return formatKind(bytesPerSecond, UnitKind::Rate, false);
}
std::string takt::formatFlops(double flopsPerSecond) {
  return formatKind(flopsPerSecond, UnitKind::Flops, false);
}

std::string takt::exactTime(int64_t nanos) {
  if (nanos >= 1000000)
    return decimal(nanos, 6) + " ms";
  if (nanos >= 1000)
    return decimal(nanos, 3) + " us";
  return fmt::format("{} ns", nanos);
}

std::string takt::exactBytes(int64_t bytes) {
  if (bytes >= 1000000 && bytes % 1000 == 0)
    return decimal(bytes, 6) + " MB";
  return fmt::format("{} B", bytes);
}
