//===- text_scanner.cpp - words and numbers of the text form ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// After each thing taken, space and comments are skipped, so that `pos` always
// stands at the next thing.
//
//===----------------------------------------------------------------------===//
#include "text_scanner.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace takt::rt {

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static bool startsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool continuesWord(char c) {
  return startsWord(c) || isDigit(c) || c == '.' || c == '-' || c == '/';
}

bool isBareWord(std::string_view name) {
  return !name.empty() && startsWord(name[0]) &&
         std::all_of(name.begin(), name.end(), continuesWord);
}

void TextScanner::failAt(size_t where, const std::string &what) {
  size_t line = 1 + std::count(text.begin(), text.begin() + where, '\n');
  size_t begin = where == 0 ? 0 : text.rfind('\n', where - 1) + 1;
  throw Error(fmt::format("{}:{}:{}: {}", file, line, where - begin + 1, what));
}

void TextScanner::skip() {
  while (pos < text.size()) {
    char c = text[pos];
    if (c == '#')
      pos = std::min(text.find('\n', pos), text.size());
    else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      ++pos;
    else
      return;
  }
}

bool TextScanner::accept(std::string_view punctuation) {
  if (text.substr(pos, punctuation.size()) != punctuation)
    return false;
  pos += punctuation.size();
  skip();
  return true;
}

void TextScanner::expect(std::string_view punctuation) {
  if (!accept(punctuation))
    fail(fmt::format("expected '{}'", punctuation));
}

std::string_view TextScanner::peekWord() const {
  if (atEnd() || !startsWord(text[pos]))
    return {};
  size_t end = pos;
  while (end < text.size() && continuesWord(text[end]))
    ++end;
  return text.substr(pos, end - pos);
}

bool TextScanner::acceptWord(std::string_view word) {
  if (peekWord() != word)
    return false;
  pos += word.size();
  skip();
  return true;
}

void TextScanner::expectWord(std::string_view word) {
  if (!acceptWord(word))
    fail(fmt::format("expected '{}'", word));
}

std::string_view TextScanner::word(const char *what) {
  std::string_view next = peekWord();
  if (next.empty())
    fail(fmt::format("expected {}", what));
  pos += next.size();
  skip();
  return next;
}

std::string TextScanner::quotedString() {
  std::string value;
  size_t start = pos++;
  while (pos < text.size() && text[pos] != '"' && text[pos] != '\n') {
    if (text[pos] == '\\' && ++pos == text.size())
      break;
    value += text[pos++];
  }
  if (pos >= text.size() || text[pos] != '"')
    failAt(start, "the string does not end on its line");
  ++pos;
  skip();
  return value;
}

std::string TextScanner::name(const char *what) {
  if (!atEnd() && text[pos] == '"')
    return quotedString();
  return std::string(word(what));
}

bool TextScanner::nextIsNumber() const {
  return !atEnd() && (isDigit(text[pos]) || text[pos] == '-');
}

int64_t TextScanner::integerIn(int64_t least, int64_t most) {
  int64_t value = 0;
  const char *begin = text.data() + pos;
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error == std::errc::invalid_argument)
    fail("expected an integer");
  if (error != std::errc() || value < least || value > most)
    fail(fmt::format("the integer is not within {} to {}", least, most));
  pos += end - begin;
  skip();
  return value;
}

uint64_t TextScanner::unsignedInteger() {
  uint64_t value = 0;
  const char *begin = text.data() + pos;
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc())
    fail("expected an integer of at most 64 bits, not negative");
  pos += end - begin;
  skip();
  return value;
}

double TextScanner::real() {
  double value = 0;
  const char *begin = text.data() + pos;
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc())
    fail("expected a number");
  pos += end - begin;
  skip();
  return value;
}

} // namespace takt::rt
