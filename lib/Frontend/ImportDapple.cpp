//===- ImportDapple.cpp - published layer profiles as models --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Parse the lines, drop what is no layer, order the rest, write YAML.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/ImportDapple.h"

#include "takt/Frontend/Read.h"
#include "takt/Frontend/Reader.h"
#include "takt/Support/Quantity.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <vector>

using namespace takt;

namespace {

struct Node {
  std::string description;
  Nanos forward = 0, backward = 0;
  Bytes activation = 0, parameters = 0;
  int line = 0;
  std::set<int64_t> from, to;
};

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

  std::map<int64_t, Node> nodes;

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
    Node node;
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
  void parseCosts(std::string_view costs, Node &node) {
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

bool startsWith(const std::string &text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// Sources "Input..." and sinks "__getitem__..." are no layers.
void dropPseudoNodes(std::map<int64_t, Node> &nodes) {
  std::vector<int64_t> drop;
  for (const auto &[number, node] : nodes)
    if ((node.from.empty() && startsWith(node.description, "Input")) ||
        (node.to.empty() && startsWith(node.description, "__getitem__")))
      drop.push_back(number);
  for (int64_t number : drop) {
    for (int64_t other : nodes[number].from)
      nodes[other].to.erase(number);
    for (int64_t other : nodes[number].to)
      nodes[other].from.erase(number);
    nodes.erase(number);
  }
}

/// Topological order, smallest number first (Kahn 1962); shorter than the graph
/// if that has a cycle.
std::vector<int64_t> orderNodes(const std::map<int64_t, Node> &nodes) {
  std::map<int64_t, std::size_t> missing;
  std::set<int64_t> ready;
  for (const auto &[number, node] : nodes) {
    missing[number] = node.from.size();
    if (node.from.empty())
      ready.insert(number);
  }
  std::vector<int64_t> order;
  while (!ready.empty()) {
    int64_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (int64_t to : nodes.at(next).to)
      if (--missing[to] == 0)
        ready.insert(to);
  }
  return order;
}

/// Turns text into letters, digits and single underscores, starting with a
/// letter or `_`, at most `limit` long; "layer" if nothing is left.
std::string identifier(std::string_view text, std::size_t limit) {
  std::string result;
  for (char c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool digit = c >= '0' && c <= '9';
    if (letter || digit || c == '-')
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
    if (result.size() == limit)
      break;
  }
  while (!result.empty() && (result.back() == '_' || result.back() == '-'))
    result.pop_back();
  if (result.empty())
    return "layer";
  bool digit = result.front() >= '0' && result.front() <= '9';
  return digit || result.front() == '-' ? "_" + result : result;
}

std::string baseName(const std::string &path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// 32 of "vgg-19-pbs-32.txt" or "x-pbs32".
std::optional<int64_t> samplesInName(const std::string &name) {
  std::size_t at = name.rfind("pbs");
  if (at == std::string::npos)
    return std::nullopt;
  at += 3;
  if (at < name.size() && (name[at] == '-' || name[at] == '_'))
    ++at;
  int64_t value = 0;
  auto [end, code] =
      std::from_chars(name.data() + at, name.data() + name.size(), value);
  return code == std::errc() && value > 0 ? std::optional<int64_t>(value)
                                          : std::nullopt;
}

} // namespace

std::optional<std::string>
takt::importDapple(const std::string &text, const std::string &fileName,
                   const ImportDappleOptions &options, Diagnostics &diags) {
  std::string checked = text;
  if (!checkText(fileName, checked, diags))
    return std::nullopt;
  diags.addSource(fileName, checked);
  std::string base = baseName(fileName);
  std::optional<int64_t> samples =
      options.samples ? options.samples : samplesInName(base);
  if (!samples) {
    diags.error({fileName, 0, 0},
                "the number of samples is not known: the file name has no "
                "'pbs-N'; give --samples");
    return std::nullopt;
  }
  constexpr int64_t kMaxBatch = std::numeric_limits<int32_t>::max();
  if (*samples < 1 || options.microBatches < 1 ||
      options.microBatches > kMaxMicroBatches ||
      *samples > kMaxBatch / options.microBatches) {
    diags.error({fileName, 0, 0},
                fmt::format("{} micro-batches of {} samples are out of range",
                            options.microBatches, *samples));
    return std::nullopt;
  }

  Parser parser(checked, fileName, diags);
  if (!parser.parse())
    return std::nullopt;
  std::map<int64_t, Node> &nodes = parser.nodes;
  dropPseudoNodes(nodes);
  std::vector<int64_t> order = orderNodes(nodes);
  if (order.size() != nodes.size()) {
    std::set<int64_t> ordered(order.begin(), order.end());
    for (const auto &[number, node] : nodes)
      if (!ordered.count(number)) {
        diags.error(
            {fileName, node.line, 1},
            fmt::format("'node{}' lies on a cycle or behind one", number));
        return std::nullopt;
      }
  }
  if (order.empty()) {
    diags.error({fileName, 0, 0}, "the profile has no layers");
    return std::nullopt;
  }

  std::string name = identifier(base.substr(0, base.rfind('.')), 64);
  std::string out = fmt::format(
      "# Imported from the layer profile '{}': measured for {} samples;\n"
      "# inputs dropped, the graph put into one chain.\n"
      "schema_version: 1\n"
      "model:\n"
      "  name: {}\n"
      "  layers:\n",
      quotable(base), *samples, name);
  for (int64_t number : order) {
    const Node &node = nodes.at(number);
    out += fmt::format(
        "    - profiled: {{name: node{}_{}, forward: {}, backward: {}, "
        "activation: {}, parameters: {}, samples: {}}}\n",
        number, identifier(node.description, 40), exactTime(node.forward),
        exactTime(node.backward), exactBytes(node.activation),
        exactBytes(node.parameters), *samples);
  }
  out += fmt::format("training:\n"
                     "  global_batch: {}\n"
                     "  micro_batches: {}\n",
                     *samples * options.microBatches, options.microBatches);
  return out;
}
