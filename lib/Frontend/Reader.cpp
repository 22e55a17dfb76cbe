//===- Reader.cpp - typed values out of a YAML tree -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Scalars by their text, each with a message that says what is needed and what
// was found.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Reader.h"

#include "takt/Support/NearestName.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

using namespace takt;

namespace {

/// What a node is, for "must be an integer, not ...".
std::string describe(const YamlNode &node) {
  switch (node.kind) {
  case YamlNode::Kind::Null:
    return "empty";
  case YamlNode::Kind::Sequence:
    return "a list";
  case YamlNode::Kind::Map:
    return "a map";
  case YamlNode::Kind::Scalar:
    break;
  }
  return fmt::format("{}'{}'", node.quoted ? "the text " : "",
                     quotable(node.scalar));
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// -?(0|[1-9][0-9]*)
bool looksInteger(std::string_view text) {
  if (!text.empty() && text.front() == '-')
    text.remove_prefix(1);
  if (text.empty() || (text.size() > 1 && text.front() == '0'))
    return false;
  for (char c : text)
    if (!isDigit(c))
      return false;
  return true;
}

} // namespace

const std::string *Reader::scalar(const YamlNode &node, std::string_view key,
                                  const char *needed) {
  if (node.kind == YamlNode::Kind::Scalar)
    return &node.scalar;
  error(node,
        fmt::format("'{}' must be {}, not {}", key, needed, describe(node)));
  return nullptr;
}

std::optional<int64_t> Reader::integer(const YamlNode &node,
                                       std::string_view key, int64_t low,
                                       int64_t high) {
  const std::string *text = scalar(node, key, "an integer");
  if (!text)
    return std::nullopt;
  if (node.quoted || !looksInteger(*text)) {
    error(node, fmt::format("'{}' must be an integer in plain digits, not {}",
                            key, describe(node)));
    return std::nullopt;
  }
  int64_t value = 0;
  auto [end, code] =
      std::from_chars(text->data(), text->data() + text->size(), value);
  bool negative = text->front() == '-';
  bool fits = code == std::errc();
  if ((fits && value < low) || (!fits && negative)) {
    error(node, fmt::format("'{}' must be at least {}, not {}", key, low,
                            quotable(*text)));
    return std::nullopt;
  }
  if (!fits || value > high) {
    error(node, fmt::format("'{}' must be at most {}, not {}", key, high,
                            quotable(*text)));
    return std::nullopt;
  }
  return value;
}

std::optional<double> Reader::real(const YamlNode &node, std::string_view key,
                                   RealRange range) {
  const std::string *text = scalar(node, key, "a number");
  if (!text)
    return std::nullopt;
  std::string_view digits = *text;
  if (!digits.empty() && digits.front() == '-')
    digits.remove_prefix(1);
  double value = 0;
  auto [end, code] =
      std::from_chars(text->data(), text->data() + text->size(), value);
  // from_chars also takes "inf" and "nan".
  bool starts =
      !digits.empty() && (isDigit(digits.front()) || digits.front() == '.');
  if (node.quoted || !starts || end != text->data() + text->size() ||
      code == std::errc::invalid_argument) {
    error(node,
          fmt::format("'{}' must be a number, not {}", key, describe(node)));
    return std::nullopt;
  }
  bool low = range.above ? value > range.low : value >= range.low;
  bool high = range.below ? value < range.high : value <= range.high;
  if (code != std::errc() || !std::isfinite(value) || !low || !high) {
    std::string bounds =
        std::isinf(range.high)
            ? fmt::format("{} {}", range.above ? "above" : "at least",
                          range.low)
            : fmt::format("{} {} and {} {}", range.above ? "above" : "at least",
                          range.low, range.below ? "below" : "at most",
                          range.high);
    error(node,
          fmt::format("'{}' must be {}, not {}", key, bounds, quotable(*text)));
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> Reader::percent(const YamlNode &node,
                                       std::string_view key, RealRange range) {
  const std::string *text = scalar(node, key, "a share such as '15 %'");
  if (!text)
    return std::nullopt;
  if (text->empty() || text->back() != '%') {
    error(node, fmt::format("'{}' must be a share such as '15 %', not {}", key,
                            describe(node)));
    return std::nullopt;
  }
  YamlNode number = node;
  number.scalar.pop_back();
  while (!number.scalar.empty() && number.scalar.back() == ' ')
    number.scalar.pop_back();
  number.quoted = false;
  std::optional<double> value = real(number, key, range);
  if (!value)
    return std::nullopt;
  const int64_t ppm = std::llround(*value * 10000);
  if (std::abs(*value * 10000 - double(ppm)) > 1e-4) {
    error(node, fmt::format("'{}' has at most 4 decimals, not {}", key,
                            describe(node)));
    return std::nullopt;
  }
  return ppm;
}

std::optional<bool> Reader::truth(const YamlNode &node, std::string_view key) {
  const std::string *text = scalar(node, key, "true or false");
  if (!text)
    return std::nullopt;
  if (!node.quoted && (*text == "true" || *text == "false"))
    return *text == "true";
  error(node,
        fmt::format("'{}' must be true or false, not {}", key, describe(node)));
  return std::nullopt;
}

std::optional<std::string> Reader::text(const YamlNode &node,
                                        std::string_view key) {
  const std::string *text = scalar(node, key, "text");
  if (!text)
    return std::nullopt;
  if (text->empty() || text->size() > 256 ||
      text->find('\n') != std::string::npos) {
    error(node, fmt::format("'{}' must be 1 to 256 bytes on one line", key));
    return std::nullopt;
  }
  return *text;
}

bool Reader::checkName(SourceLoc place, std::string_view name,
                       std::string_view what) {
  auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  bool fine = !name.empty() && name.size() <= 64 && isLetter(name.front());
  for (char c : name)
    fine = fine && (isLetter(c) || isDigit(c) || c == '-');
  if (!fine)
    error(std::move(place),
          fmt::format("'{}' cannot be {}; use letters, digits, '_' and '-', "
                      "starting with a letter or '_', at most 64",
                      quotable(name, 64), what));
  return fine;
}

std::optional<std::string> Reader::name(const YamlNode &node,
                                        std::string_view key) {
  const std::string *text = scalar(node, key, "a name");
  if (!text || !checkName(loc(node), *text, "a name"))
    return std::nullopt;
  return *text;
}

std::optional<std::size_t> Reader::word(const YamlNode &node,
                                        std::string_view key,
                                        const KeyTable &words) {
  std::string choice = fmt::format("one of {}", fmt::join(words.keys, ", "));
  const std::string *text = scalar(node, key, choice.c_str());
  if (!text)
    return std::nullopt;
  for (std::size_t i = 0; i < words.keys.size(); ++i)
    if (*text == words.keys[i])
      return i;
  error(node, fmt::format("'{}' must be {}, not {}{}", key, choice,
                          describe(node), nearestHint(*text, words.keys)));
  return std::nullopt;
}

template <typename T>
std::optional<T> Reader::quantity(const YamlNode &node, std::string_view key,
                                  const char *needed,
                                  Parsed<T> (*parse)(std::string_view), T limit,
                                  const char *limitText) {
  const std::string *text = scalar(node, key, needed);
  if (!text)
    return std::nullopt;
  Parsed<T> parsed = parse(*text);
  if (!parsed) {
    error(node, fmt::format("'{}': {}", key, parsed.error));
    return std::nullopt;
  }
  if (parsed.value > limit) {
    error(node, fmt::format("'{}' must be at most {}, not {}", key, limitText,
                            quotable(*text)));
    return std::nullopt;
  }
  return parsed.value;
}

std::optional<int64_t> Reader::time(const YamlNode &node,
                                    std::string_view key) {
  return quantity<int64_t>(node, key, "a time", parseTime, kMaxTime, "10000 s");
}

std::optional<int64_t> Reader::bytes(const YamlNode &node,
                                     std::string_view key) {
  return quantity<int64_t>(node, key, "a size in bytes", parseBytes, kMaxBytes,
                           "1024 TiB");
}

std::optional<double> Reader::rate(const YamlNode &node, std::string_view key) {
  auto value = quantity<double>(node, key, "a transfer rate", parseRate, 1e24,
                                "1e12 TB/s");
  if (value && *value <= 0) {
    error(node, fmt::format("'{}' must be above 0", key));
    return std::nullopt;
  }
  return value;
}

std::optional<double> Reader::flops(const YamlNode &node,
                                    std::string_view key) {
  auto value = quantity<double>(node, key, "an arithmetic rate", parseFlops,
                                1e24, "1e9 PFLOP/s");
  if (value && *value <= 0) {
    error(node, fmt::format("'{}' must be above 0", key));
    return std::nullopt;
  }
  return value;
}

const std::vector<YamlNodePtr> *
Reader::list(const YamlNode &node, std::string_view key, bool mayBeEmpty) {
  if (node.kind != YamlNode::Kind::Sequence) {
    error(node,
          fmt::format("'{}' must be a list, not {}", key, describe(node)));
    return nullptr;
  }
  if (node.items.empty() && !mayBeEmpty) {
    error(node, fmt::format("'{}' must not be empty", key));
    return nullptr;
  }
  return &node.items;
}

const std::vector<YamlNode::Entry> *Reader::map(const YamlNode &node,
                                                std::string_view key) {
  if (node.kind != YamlNode::Kind::Map) {
    error(node, fmt::format("'{}' must be a map, not {}", key, describe(node)));
    return nullptr;
  }
  if (node.entries.empty()) {
    error(node, fmt::format("'{}' must not be empty", key));
    return nullptr;
  }
  return &node.entries;
}
