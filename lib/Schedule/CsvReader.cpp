//===- CsvReader.cpp - schedule files from text
//----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Cuts the text into rows and cells, reads the actions of a cell, and resolves
// the older spelling, in which B may mean the input gradient alone.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/File.h"

#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

using namespace takt;

namespace {

/// Numbers beyond this are refused as they stand; the lists must spell out what
/// they name, so that real files stay far below.
constexpr int32_t kMaxStage = 65534, kMaxMicroBatch = 1 << 24;
constexpr size_t kMaxRows = 65535;

struct Spelling {
  std::string_view text;
  FileActionKind kind;
  bool hasMicroBatch;
};

// Longer words before their beginnings: "BW" before "B", "RESHARD" before none.
constexpr Spelling kSpellings[] = {
    {"WAIT_SEND_F", FileActionKind::WaitSendF, true},
    {"WAIT_SEND_B", FileActionKind::WaitSendB, true},
    {"WAIT_REDUCE_GRAD", FileActionKind::WaitReduceGrad, false},
    {"SEND_F", FileActionKind::SendF, true},
    {"RECV_F", FileActionKind::RecvF, true},
    {"SEND_B", FileActionKind::SendB, true},
    {"RECV_B", FileActionKind::RecvB, true},
    {"UNSHARD", FileActionKind::Unshard, false},
    {"RESHARD", FileActionKind::Reshard, false},
    {"REDUCE_GRAD", FileActionKind::ReduceGrad, false},
    {"BW", FileActionKind::B, true},
    {"F", FileActionKind::F, true},
    {"I", FileActionKind::I, true},
    {"W", FileActionKind::W, true},
    {"B", FileActionKind::B, true},
};

constexpr std::string_view kExpected =
    "expected a stage, a kind and a micro-batch, for instance '1F0', '1B0', "
    "'1SEND_F0', or a stage and UNSHARD, RESHARD or REDUCE_GRAD";

class CsvReader {
public:
  CsvReader(const std::string &file, const std::string &text,
            Diagnostics &diags)
      : text(text), diags(diags) {
    result.name = file;
  }

  std::optional<ScheduleFile> read();

private:
  void readRow(std::string_view row);
  void readCell(std::string_view cell, int32_t column);
  bool readPair(std::string_view cell, int32_t column);
  bool readOverlap(std::string_view cell, int32_t column);
  /// One action that fills `cell` but for what stays in it.
  bool takeAction(std::string_view &cell, int32_t column, FileAction &out);
  bool takeStageLast(std::string_view &cell, FileAction &out);
  bool takeNumber(std::string_view &cell, int32_t column, const char *what,
                  int32_t most, int32_t &out);
  bool fail(int32_t column, std::string message);
  void resolveOldSpelling();
  void count();

  const std::string &text;
  Diagnostics &diags;
  ScheduleFile result;
  int32_t line = 0;
};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isBlank(char c) { return c == ' ' || c == '\t'; }

bool CsvReader::fail(int32_t column, std::string message) {
  diags.error({result.name, line, column}, std::move(message));
  return false;
}

bool CsvReader::takeNumber(std::string_view &cell, int32_t column,
                           const char *what, int32_t most, int32_t &out) {
  size_t size = 0;
  while (size < cell.size() && isDigit(cell[size]))
    ++size;
  if (size == 0)
    return fail(column, fmt::format("'{}' lacks the number of its {}; {}",
                                    quotable(cell), what, kExpected));
  if (size > 1 && cell[0] == '0')
    return fail(column, fmt::format("'{}' is no number of a {}: it begins "
                                    "with 0",
                                    quotable(cell.substr(0, size)), what));
  int64_t number = 0;
  for (size_t i = 0; i < size; ++i) {
    number = number * 10 + (cell[i] - '0');
    if (number > most)
      return fail(column,
                  fmt::format("{} {} is too large, at most {} is "
                              "possible",
                              what, quotable(cell.substr(0, size)), most));
  }
  out = int32_t(number);
  cell.remove_prefix(size);
  return true;
}

/// "F0_s1", the first spelling of all.
bool CsvReader::takeStageLast(std::string_view &cell, FileAction &out) {
  static constexpr std::pair<char, FileActionKind> kinds[] = {
      {'F', FileActionKind::F},
      {'B', FileActionKind::B},
      {'W', FileActionKind::W}};
  size_t mark = cell.find("_s");
  if (mark == std::string_view::npos)
    return false;
  auto number = [](std::string_view digits, int32_t most, int32_t &to) {
    if (digits.empty() || digits.size() > 8 ||
        !std::all_of(digits.begin(), digits.end(), isDigit))
      return false;
    int32_t value = 0;
    for (char c : digits)
      value = value * 10 + (c - '0');
    to = value;
    return value <= most;
  };
  for (auto [letter, kind] : kinds)
    if (cell[0] == letter &&
        number(cell.substr(1, mark - 1), kMaxMicroBatch, out.microBatch) &&
        number(cell.substr(mark + 2), kMaxStage, out.stage)) {
      out.kind = kind;
      cell = {};
      return true;
    }
  return false;
}

bool CsvReader::takeAction(std::string_view &cell, int32_t column,
                           FileAction &out) {
  const char *begin = cell.data();
  out.line = line;
  out.column = column;
  if (takeStageLast(cell, out))
    return true;
  if (cell.empty() || !isDigit(cell[0]))
    return fail(column, fmt::format("'{}' is no action; {}", quotable(cell),
                                    kExpected));
  if (!takeNumber(cell, column, "stage", kMaxStage, out.stage))
    return false;
  for (const Spelling &spelling : kSpellings) {
    if (cell.substr(0, spelling.text.size()) != spelling.text)
      continue;
    cell.remove_prefix(spelling.text.size());
    out.kind = spelling.kind;
    out.microBatch = -1;
    const int32_t at = column + int32_t(cell.data() - begin);
    return !spelling.hasMicroBatch ||
           takeNumber(cell, at, "micro-batch", kMaxMicroBatch, out.microBatch);
  }
  return fail(
      column + int32_t(cell.data() - begin),
      fmt::format("'{}' is no kind of action; {}", quotable(cell), kExpected));
}

/// "(1F0;0B2)OVERLAP_F_B"
bool CsvReader::readOverlap(std::string_view cell, int32_t column) {
  constexpr std::string_view word = "OVERLAP_F_B";
  const size_t close = cell.find(')');
  if (close == std::string_view::npos)
    return fail(column, fmt::format("'{}' has no ')'", quotable(cell)));
  if (cell.substr(close + 1) != word)
    return fail(column + int32_t(close) + 1,
                fmt::format("expected '{}' behind ')', got '{}'", word,
                            quotable(cell.substr(close + 1))));
  std::string_view inside = cell.substr(1, close - 1);
  std::array<FileAction, 2> both;
  int32_t at = column + 1;
  for (size_t i = 0; i < both.size(); ++i) {
    const char *begin = inside.data();
    if (!takeAction(inside, at, both[i]))
      return false;
    if (!both[i].isCompute())
      return fail(at, fmt::format("'{}' cannot overlap: {} takes two compute "
                                  "actions",
                                  toText(both[i]), word));
    at += int32_t(inside.data() - begin);
    if (i == 0) {
      if (inside.empty() || inside[0] != ';')
        return fail(at, fmt::format("expected ';' and a second action in '{}'",
                                    quotable(cell)));
      inside.remove_prefix(1);
      ++at;
    }
  }
  if (!inside.empty())
    return fail(at,
                fmt::format("'{}' has more than two actions", quotable(cell)));
  both[0].withNext = true;
  result.rows.back().insert(result.rows.back().end(), both.begin(), both.end());
  return true;
}

/// One action, or two transfers joined by "_".
bool CsvReader::readPair(std::string_view cell, int32_t column) {
  std::vector<FileAction> &row = result.rows.back();
  const char *begin = cell.data();
  FileAction first;
  if (!takeAction(cell, column, first))
    return false;
  auto here = [&] { return column + int32_t(cell.data() - begin); };
  if (!cell.empty() && cell[0] == '_' && first.isTransfer()) {
    cell.remove_prefix(1);
    FileAction second;
    if (!takeAction(cell, here(), second))
      return false;
    if (!second.isTransfer())
      return fail(second.column, fmt::format("'{}' is no transfer and cannot "
                                             "be joined to '{}'",
                                             toText(second), toText(first)));
    first.withNext = true;
    row.push_back(first);
    first = second;
  }
  if (!cell.empty())
    return fail(here(), fmt::format("'{}' stands behind '{}' in one cell",
                                    quotable(cell), toText(first)));
  row.push_back(first);
  return true;
}

void CsvReader::readCell(std::string_view cell, int32_t column) {
  auto trim = [&] {
    while (!cell.empty() && isBlank(cell.front())) {
      cell.remove_prefix(1);
      ++column;
    }
    while (!cell.empty() && isBlank(cell.back()))
      cell.remove_suffix(1);
  };
  trim();
  // Spreadsheets quote what they save; no action holds a quote or a comma.
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
    cell = cell.substr(1, cell.size() - 2);
    ++column;
    trim();
  }
  if (cell.empty())
    return; // an idle slot
  if (cell.front() == '(')
    readOverlap(cell, column);
  else
    readPair(cell, column);
}

void CsvReader::readRow(std::string_view row) {
  size_t begin = 0;
  while (begin <= row.size()) {
    size_t end = std::min(row.find(',', begin), row.size());
    readCell(row.substr(begin, end - begin), int32_t(begin) + 1);
    begin = end + 1;
  }
}

/// Where a row has B and W of a stage and micro-batch, B is the input gradient.
void CsvReader::resolveOldSpelling() {
  for (std::vector<FileAction> &row : result.rows) {
    std::set<std::pair<int32_t, int32_t>> weightGrads, inputGrads;
    for (const FileAction &action : row) {
      if (action.kind == FileActionKind::W)
        weightGrads.insert({action.stage, action.microBatch});
      if (action.kind == FileActionKind::I)
        inputGrads.insert({action.stage, action.microBatch});
    }
    if (weightGrads.empty())
      continue;
    for (FileAction &action : row) {
      const std::pair<int32_t, int32_t> passage{action.stage,
                                                action.microBatch};
      if (action.kind == FileActionKind::B && weightGrads.count(passage) &&
          !inputGrads.count(passage))
        action.kind = FileActionKind::I;
    }
  }
}

void CsvReader::count() {
  for (const std::vector<FileAction> &row : result.rows)
    for (const FileAction &action : row) {
      if (!action.isCompute())
        continue;
      result.stages = std::max(result.stages, action.stage + 1);
      result.microBatches =
          std::max(result.microBatches, action.microBatch + 1);
    }
}

std::optional<ScheduleFile> CsvReader::read() {
  const size_t before = diags.errorCount();
  std::string_view rest = text;
  // Lines at the end that hold nothing are no ranks.
  while (!rest.empty() &&
         (isBlank(rest.back()) || rest.back() == '\n' || rest.back() == '\r'))
    rest.remove_suffix(1);
  if (rest.empty()) {
    line = 1;
    fail(1, "the schedule has no actions");
    return std::nullopt;
  }
  while (true) {
    ++line;
    if (result.rows.size() == kMaxRows) {
      fail(1, fmt::format("more than {} rows: a row is a rank", kMaxRows));
      break;
    }
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view row = rest.substr(0, end);
    if (!row.empty() && row.back() == '\r')
      row.remove_suffix(1);
    result.rows.emplace_back();
    const size_t errors = diags.errorCount();
    readRow(row);
    if (result.rows.back().empty() && diags.errorCount() == errors)
      fail(1, fmt::format("rank {} has no actions", result.rows.size() - 1));
    if (end == rest.size())
      break;
    rest.remove_prefix(end + 1);
  }
  if (diags.errorCount() != before)
    return std::nullopt;
  resolveOldSpelling();
  count();
  if (result.stages == 0) {
    line = 1;
    fail(1, "the schedule computes nothing");
    return std::nullopt;
  }
  return std::move(result);
}

} // namespace

std::optional<ScheduleFile> takt::parseScheduleCsv(const std::string &file,
                                                   std::string text,
                                                   Diagnostics &diags) {
  if (!checkText(file, text, diags))
    return std::nullopt;
  diags.addSource(file, text);
  return CsvReader(file, text, diags).read();
}
