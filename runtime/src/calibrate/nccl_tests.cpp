//===- nccl_tests.cpp - what nccl-tests print -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Versions differ in columns before the times (older ones lack 'root', some
// tests print no 'redop'), so columns count from the right.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/nccl_tests.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

namespace takt::rt {

namespace {
using Words = std::vector<std::string>;

/// Without what launchers put before a line: "0:" (srun --label) or
/// "[1,0]<stdout>:" (mpirun --tag-output).
Words wordsOf(std::string line) {
  size_t tag = line.find(">:");
  if (!line.empty() && line[0] == '[' && tag != std::string::npos)
    line.erase(0, tag + 2);
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;)
    words.push_back(word);
  if (!words.empty() && words[0].back() == ':' &&
      words[0].find_first_not_of("0123456789") + 1 == words[0].size())
    words.erase(words.begin());
  return words;
}

std::optional<double> number(const std::string &word) {
  double value = 0;
  const char *last = word.data() + word.size();
  auto [end, error] = std::from_chars(word.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value))
    return std::nullopt;
  return value;
}

class Parser {
public:
  Parser(const std::string &text, const std::string &path)
      : text(text), path(path) {}
  NcclTable parse();

private:
  struct Row {
    int line;
    double bytes, micros, algbw, busbw;
  };

  [[noreturn]] void fail(int line, const std::string &what) const {
    throw Error(fmt::format("{}:{}: {}", path, line, what));
  }
  void lineRead(int line, const Words &words);
  void header(const Words &words);
  void row(int line, const Words &words);
  void addRow(const Row &row);
  void decide();
  double busFactor() const;

  const std::string &text;
  const std::string &path;
  std::vector<size_t> times; ///< columns named 'time', from the right
  size_t columns = 0;
  std::string test, reduction; ///< as printed
  std::set<std::string> ranks, hosts;
  std::vector<Row> rows;
  NcclTable table;
};

/// "#  Rank  0 Group  0 Pid 1 on HOST device 0 ...", the names of columns, a
/// row, or something else.
void Parser::lineRead(int line, const Words &words) {
  auto has = [&](const char *word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  auto after = [&](const char *word) -> std::string {
    auto at = std::find(words.begin(), words.end(), word);
    return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
  };
  if (has("size") && has("time") && has("algbw") && has("busbw"))
    return header(words);
  if (has("Collective") && has("starting:"))
    test = after("starting:");
  if (has("Rank") && has("Pid") && has("on")) {
    ranks.insert(after("Rank"));
    hosts.insert(after("on"));
  }
  if (columns > 0 && !words.empty() && number(words[0]))
    row(line, words);
}

void Parser::header(const Words &names) {
  columns = names.size() - (names[0] == "#" ? 1 : 0);
  times.clear();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == "time")
      times.push_back(names.size() - i);
}

void Parser::row(int line, const Words &words) {
  if (words.size() > columns || words.size() <= times.front())
    fail(line, fmt::format("a row of {} columns where the head of the table "
                           "has {}",
                           words.size(), columns));
  for (const std::string &word : words)
    if (word == "sum" || word == "prod" || word == "max" || word == "min" ||
        word == "avg")
      reduction = word;
  for (size_t fromRight : times) {
    size_t at = words.size() - fromRight;
    double values[3];
    for (size_t i = 0; i < 3; ++i) {
      std::optional<double> value =
          at + i < words.size() ? number(words[at + i]) : std::nullopt;
      if (!value || *value < 0)
        fail(line, fmt::format("'{}' is no time or rate",
                               at + i < words.size() ? words[at + i] : ""));
      values[i] = *value;
    }
    addRow({line, *number(words[0]), values[0], values[1], values[2]});
  }
}

void Parser::addRow(const Row &row) {
  if (row.bytes == 0)
    return; // fewer elements than ranks: nothing was sent
  if (row.micros <= 0 || row.bytes < 0 || row.bytes > 1e15 ||
      row.bytes != std::floor(row.bytes))
    fail(row.line,
         fmt::format("{} B in {} us cannot be", row.bytes, row.micros));
  double rate = row.bytes / row.micros * 1e-3; // GB/s
  if (std::abs(rate - row.algbw) > 0.02 + 0.02 * rate)
    fail(row.line, fmt::format("{} B in {} us are {:.2f} GB/s, and the column "
                               "'algbw' says {}",
                               row.bytes, row.micros, rate, row.algbw));
  rows.push_back(row);
}

/// 'busbw' by 'algbw'.
double Parser::busFactor() const {
  auto fastest = std::max_element(
      rows.begin(), rows.end(),
      [](const Row &a, const Row &b) { return a.algbw < b.algbw; });
  if (fastest->algbw <= 0)
    fail(fastest->line, "no row tells 'algbw' from 0");
  return fastest->busbw / fastest->algbw;
}

/// Which test it was, and of how many ranks.
void Parser::decide() {
  double factor = busFactor();
  if (!test.empty() && test != "all_reduce_perf" && test != "sendrecv_perf")
    throw Error(fmt::format("{}: '{}' does not say what one link does; "
                            "'all_reduce_perf' and 'sendrecv_perf' do",
                            path, test));
  table.allReduce = test.empty() ? !reduction.empty() : test[0] == 'a';
  table.ranks = int32_t(ranks.size());
  table.hosts = int32_t(hosts.size());
  if (table.ranks == 0 && table.allReduce && factor > 0.99 && factor < 1.999)
    table.ranks = int32_t(std::lround(2 / (2 - factor)));
  if (table.ranks == 0 && !table.allReduce)
    table.ranks = 2;
  double expected =
      table.allReduce ? 2.0 * (table.ranks - 1) / table.ranks : 1.0;
  if (table.ranks < 2 || std::abs(factor - expected) > 0.03 * expected)
    throw Error(fmt::format("{}: 'busbw' is {:.2f} times 'algbw', which is not "
                            "{} of {} ranks",
                            path, factor,
                            table.allReduce ? "an all-reduce" : "a sendrecv",
                            table.ranks));
}

NcclTable Parser::parse() {
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);)
    lineRead(++number, wordsOf(line));
  if (rows.empty())
    throw Error(
        fmt::format("{}: no table of nccl-tests with rows in it", path));
  decide();
  for (const Row &row : rows)
    table.times.push_back({Bytes(row.bytes), row.micros * 1e3});
  return table;
}
} // namespace

NcclTable parseNcclTests(const std::string &text, const std::string &path) {
  return Parser(text, path).parse();
}

LinkFit fitNcclTests(const NcclTable &table) {
  LinkFit fit = fitLink(table.times);
  if (!table.allReduce)
    return fit;
  double messages = 2.0 * (table.ranks - 1);
  fit.latencyNanos /= messages;
  fit.bytesPerSecond *= messages / table.ranks;
  return fit;
}

} // namespace takt::rt
