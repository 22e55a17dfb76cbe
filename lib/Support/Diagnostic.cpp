//===- Diagnostic.cpp - errors with their place ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Printing: the message, the line it points at, a caret. Long lines are shown
// in a window around the caret, so that a minified file stays readable.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/Diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <tuple>
#include <utility>

using namespace takt;

namespace {

const char *severityName(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Note:
    break;
  }
  return "note";
}

bool isContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Widest part of a source line that is shown.
constexpr std::size_t kWindow = 120;

/// The line and the caret under its byte `column` (from 0).
std::string excerpt(std::string_view line, std::size_t column) {
  column = std::min(column, line.size());
  std::size_t begin = 0;
  if (line.size() > kWindow && column > kWindow / 2)
    begin = column - kWindow / 2;
  while (begin > 0 && begin < line.size() && isContinuation(line[begin]))
    --begin;
  std::size_t end = std::min(line.size(), begin + kWindow);
  while (end < line.size() && isContinuation(line[end]))
    ++end;
  std::string shown, caret;
  for (std::size_t i = begin; i < end; ++i) {
    unsigned char c = line[i];
    bool control = (c < 0x20 && c != '\t') || c == 0x7f;
    shown += control ? '?' : line[i];
    // A tab stays a tab so that both lines agree; of a character of several
    // bytes only the first takes a column.
    if (i < column && !isContinuation(line[i]))
      caret += c == '\t' ? '\t' : ' ';
  }
  return shown + "\n" + caret + "^\n";
}

/// The line's text, found by counting: few messages are printed, and an index
/// of lines could take more room than the text.
std::string_view lineOf(std::string_view text, int number) {
  std::size_t begin = 0;
  for (int line = 1; line < number; ++line) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos)
      return {};
    ++begin;
  }
  std::string_view line = text.substr(begin);
  line = line.substr(0, line.find('\n'));
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  return line;
}

} // namespace

Diagnostic &Diagnostic::note(SourceLoc place, std::string text) {
  notes.push_back({Severity::Note, std::move(place), std::move(text), {}});
  return *this;
}

void Diagnostics::addSource(const std::string &file, std::string text) {
  sources[file] = std::move(text);
}

Diagnostic &Diagnostics::add(Severity severity, SourceLoc loc,
                             std::string message) {
  numErrors += severity == Severity::Error;
  if (kept.size() >= kMaxKept) {
    ++numDropped;
    overflow = Diagnostic();
    return overflow;
  }
  kept.push_back({severity, std::move(loc), std::move(message), {}});
  return kept.back();
}

Diagnostic &Diagnostics::error(SourceLoc loc, std::string message) {
  return add(Severity::Error, std::move(loc), std::move(message));
}

Diagnostic &Diagnostics::warning(SourceLoc loc, std::string message) {
  return add(Severity::Warning, std::move(loc), std::move(message));
}

void Diagnostics::append(std::string &out, const Diagnostic &diagnostic) const {
  const SourceLoc &loc = diagnostic.loc;
  if (!loc.file.empty())
    out += loc.file + ":";
  if (loc.line > 0)
    out += fmt::format("{}:{}:", loc.line, loc.column);
  if (!out.empty() && out.back() == ':')
    out += " ";
  out += fmt::format("{}: {}\n", severityName(diagnostic.severity),
                     diagnostic.message);
  auto it = sources.find(loc.file);
  if (it != sources.end() && loc.line > 0) {
    std::string_view line = lineOf(it->second, loc.line);
    if (!line.empty())
      out += excerpt(line, loc.column > 0 ? loc.column - 1 : 0);
  }
  for (const Diagnostic &note : diagnostic.notes)
    append(out, note);
}

std::string Diagnostics::text() const {
  std::map<std::string, std::size_t> fileRank;
  std::vector<const Diagnostic *> order;
  for (const Diagnostic &diagnostic : kept) {
    fileRank.emplace(diagnostic.loc.file, fileRank.size());
    order.push_back(&diagnostic);
  }
  auto key = [&](const Diagnostic *d) {
    return std::make_tuple(fileRank.at(d->loc.file), d->loc.line,
                           d->loc.column);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Diagnostic *a, const Diagnostic *b) {
                     return key(a) < key(b);
                   });
  std::string out;
  for (const Diagnostic *diagnostic : order)
    append(out, *diagnostic);
  if (numDropped)
    out += fmt::format("{} further messages are not shown\n", numDropped);
  return out;
}

void Diagnostics::print(std::ostream &out) const { out << text(); }

std::string takt::quotable(std::string_view text, std::size_t limit) {
  std::string result;
  std::size_t taken = 0;
  for (; taken < text.size(); ++taken) {
    unsigned char c = text[taken];
    if (taken >= limit && !isContinuation(text[taken]))
      break;
    if (c < 0x20 || c == 0x7f)
      result += fmt::format("\\x{:02x}", c);
    else
      result += text[taken];
  }
  if (taken < text.size())
    result += "...";
  return result;
}
