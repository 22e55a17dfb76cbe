//===- text_scanner.h - words and numbers of the text form ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A scanner without a token list: the parser says what it expects next. Numbers
// are read independently of the locale. Everything throws `Error` with
// "name:line:column: ..." at the place in question.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace takt::rt {

/// True for a name that stands in the text form without quotes.
bool isBareWord(std::string_view name);

class TextScanner {
public:
  TextScanner(std::string_view text, const std::string &file)
      : text(text), file(file) {
    skip();
  }

  bool atEnd() const { return pos == text.size(); }
  size_t position() const { return pos; }
  [[noreturn]] void fail(const std::string &what) { failAt(pos, what); }
  [[noreturn]] void failAt(size_t where, const std::string &what);

  /// Takes the punctuation if it is next.
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  /// Takes the bare word if it is next.
  bool acceptWord(std::string_view word);
  void expectWord(std::string_view word);
  /// The bare word at this place, not taken; empty if there is none.
  std::string_view peekWord() const;
  /// Takes a bare word.
  std::string_view word(const char *what);
  /// Takes a name: a bare word or a string in double quotes.
  std::string name(const char *what);

  bool nextIsNumber() const;
  double real();
  template <typename T>
  T integer() {
    if constexpr (std::is_same_v<T, uint64_t>)
      return unsignedInteger();
    else
      return static_cast<T>(
          integerIn(static_cast<int64_t>(std::numeric_limits<T>::min()),
                    static_cast<int64_t>(std::numeric_limits<T>::max())));
  }

private:
  void skip();
  int64_t integerIn(int64_t least, int64_t most);
  uint64_t unsignedInteger();
  std::string quotedString();

  std::string_view text;
  const std::string &file;
  size_t pos = 0;
};

} // namespace takt::rt
