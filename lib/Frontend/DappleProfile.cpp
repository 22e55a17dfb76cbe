//===- DappleProfile.cpp - the text of a layer profile --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One line a node or an edge; every fault with its line and column.
//
//===----------------------------------------------------------------------===//
#include "DappleProfile.h"

#include "takt/Frontend/Reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

using namespace takt;

namespace {

struct Edge {
  int64_t from = 0, to = 0;
  int line = 0, fromColumn = 0, toColumn = 0;
};

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back()))
    text.remove_suffix(1);
  return text;
}

/// The number of "node12".
std::optional<int64_t> nodeNumber(std::string_view text) {
  constexpr std::string_view kWord = "node";
  if (text.substr(0, kWord.size()) != kWord)
    return std::nullopt;
  text.remove_prefix(kWord.size());
  int64_t number = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || code != std::errc() || number < 0 ||
      end != text.data() + text.size())
    return std::nullopt;
  return number;
}

class Parser {
public:
  Parser(const std::string &text, const std::string &file, Diagnostics &diags)
      : text(text), file(file), diags(diags) {}

  bool parse() {
    std::size_t errors = diags.errorCount();
    std::string_view rest = text;
    for (lineNumber = 1; !rest.empty(); ++lineNumber) {
      std::size_t end = rest.find('\n');
      line = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view()
                                           : rest.substr(end + 1);
      if (!trim(line).empty())
        parseLine();
    }
    connect();
    return diags.errorCount() == errors;
  }

  std::map<int64_t, DappleNode> nodes;

private:
  int columnOf(std::string_view part) const {
    return static_cast<int>(part.data() - line.data()) + 1;
  }
  void error(std::string_view at, std::string message) {
    diags.error({file, lineNumber, columnOf(at)}, std::move(message));
  }

  void parseLine() {
    constexpr std::string_view kBar = "--";
    std::string_view whole = trim(line);
    std::size_t first = whole.find(kBar);
    if (first == std::string_view::npos) {
      error(whole, "expected 'nodeN -- description -- costs' or "
                   "'nodeN -- nodeM'");
      return;
    }
    std::string_view left = trim(whole.substr(0, first));
    std::string_view right = trim(whole.substr(first + kBar.size()));
    std::optional<int64_t> number = nodeNumber(left);
    if (!number) {
      error(whole,
            fmt::format("'{}' is not a node such as 'node12'", quotable(left)));
      return;
    }
    if (std::optional<int64_t> target = nodeNumber(right)) {
      edges.push_back(
          {*number, *target, lineNumber, columnOf(left), columnOf(right)});
      return;
    }
    // The description may hold dashes: the costs start after the last bar.
    std::size_t last = right.rfind(" -- ");
    if (last == std::string_view::npos) {
      error(right, fmt::format("expected a node such as 'node12' or "
                               "'description -- costs', not '{}'",
                               quotable(right)));
      return;
    }
    DappleNode node;
    node.description = std::string(trim(right.substr(0, last)));
    node.line = lineNumber;
    parseCosts(trim(right.substr(last + 4)), node);
    auto [known, isNew] = nodes.emplace(*number, std::move(node));
    if (!isNew)
      diags
          .error({file, lineNumber, columnOf(left)},
                 fmt::format("'node{}' is given twice", *number))
          .note({file, known->second.line, 1}, "first given here");
  }

  /// "forward_compute_time=F, ...", each key once, in any order.
  void parseCosts(std::string_view costs, DappleNode &node) {
    std::set<std::string, std::less<>> seen;
    for (std::string_view rest = costs; !rest.empty();) {
      std::size_t comma = rest.find(',');
      std::string_view setting = trim(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view()
                                             : rest.substr(comma + 1);
      std::size_t equals = setting.find('=');
      if (equals == std::string_view::npos) {
        error(setting.empty() ? costs : setting,
              fmt::format("expected 'key=value', not '{}'", quotable(setting)));
        return;
      }
      std::string_view key = trim(setting.substr(0, equals));
      std::string_view value = trim(setting.substr(equals + 1));
      if (!seen.emplace(key).second) {
        error(key, fmt::format("'{}' is given twice", quotable(key)));
        return;
      }
      if (key == "forward_compute_time")
        node.forward = number(value, 1e6, kMaxTime);
      else if (key == "backward_compute_time")
        node.backward = number(value, 1e6, kMaxTime);
      else if (key == "activation_size")
        node.activation = sizes(value);
      else if (key == "parameter_size")
        node.parameters = number(value, 1, kMaxBytes);
      else
        error(key, fmt::format("unknown key '{}'", quotable(key)));
    }
    for (const char *key : {"forward_compute_time", "backward_compute_time",
                            "activation_size", "parameter_size"})
      if (!seen.count(key))
        error(costs, fmt::format("the node lacks '{}'", key));
  }

  /// A decimal number times `scale`, rounded, from 0 to `limit`.
  int64_t number(std::string_view value, double scale, int64_t limit) {
    double result = 0;
    auto [end, code] =
        std::from_chars(value.data(), value.data() + value.size(), result);
    if (value.empty() || code != std::errc() ||
        end != value.data() + value.size() || !std::isfinite(result)) {
      error(value, fmt::format("'{}' is not a number", quotable(value)));
      return 0;
    }
    result = std::round(result * scale);
    if (result < 0 || result > static_cast<double>(limit)) {
      error(value, fmt::format("'{}' is out of range", quotable(value)));
      return 0;
    }
    return static_cast<int64_t>(result);
  }

  /// "A" or "[a; b; c]", summed.
  Bytes sizes(std::string_view value) {
    if (value.empty() || value.front() != '[')
      return number(value, 1, kMaxBytes);
    if (value.back() != ']') {
      error(value, "the list lacks its ']'");
      return 0;
    }
    Bytes sum = 0;
    std::string_view rest = value.substr(1, value.size() - 2);
    for (bool more = true; more;) {
      std::size_t end = rest.find(';');
      more = end != std::string_view::npos;
      sum += number(trim(rest.substr(0, end)), 1, kMaxBytes);
      rest = more ? rest.substr(end + 1) : rest;
      if (sum > kMaxBytes) {
        error(value, "the sum is out of range");
        return 0;
      }
    }
    return sum;
  }

  void connect() {
    for (const Edge &edge : edges) {
      auto from = nodes.find(edge.from), to = nodes.find(edge.to);
      if (from == nodes.end())
        diags.error({file, edge.line, edge.fromColumn},
                    fmt::format("there is no 'node{}'", edge.from));
      if (to == nodes.end())
        diags.error({file, edge.line, edge.toColumn},
                    fmt::format("there is no 'node{}'", edge.to));
      if (from == nodes.end() || to == nodes.end())
        continue;
      from->second.to.insert(edge.to);
      to->second.from.insert(edge.from);
    }
  }

  const std::string &text;
  const std::string &file;
  Diagnostics &diags;
  std::string_view line;
  int lineNumber = 0;
  std::vector<Edge> edges;
};

} // namespace

std::optional<std::map<int64_t, DappleNode>>
takt::parseDappleProfile(const std::string &text, const std::string &file,
                         Diagnostics &diags) {
  Parser parser(text, file, diags);
  if (!parser.parse())
    return std::nullopt;
  return std::move(parser.nodes);
}
