//===- mutator.h - damaged copies of good inputs ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Deterministic: the same seeds, words and number give the same mutants.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace takt::fuzz {

class Mutator {
public:
  /// Largest mutant in bytes: harm comes from structure, not from size.
  static constexpr size_t kLargest = 1 << 16;

  Mutator(std::vector<std::string> seeds, std::vector<std::string> words,
          uint64_t number)
      : good(std::move(seeds)), words(std::move(words)), state(number) {}

  /// One to eight changes to one of the inputs.
  std::string next();
  /// A mutant that reached new code is worth changing further; `isGood` if the
  /// reader took it.
  void keep(std::string mutant, bool isGood);

private:
  uint64_t random();
  /// 0 .. count - 1; 0 when the count is 0.
  size_t below(size_t count) { return count ? random() % count : 0; }

  const std::string &pick();
  void change(std::string &data);
  void flipBit(std::string &data);
  void truncate(std::string &data);
  void removeRange(std::string &data);
  void repeatRange(std::string &data);
  void splice(std::string &data);
  void tweakDecimal(std::string &data);
  void replaceByOther(std::string &data, size_t begin, size_t end);
  void tweakBinary(std::string &data);
  void insertWord(std::string &data);
  void replaceToken(std::string &data);
  void moveLine(std::string &data);
  /// A token's range: letters, digits and underscores around a random place.
  std::pair<size_t, size_t> token(const std::string &data);
  /// A line's range with its end.
  std::pair<size_t, size_t> line(const std::string &data);

  /// What the reader takes, and what it refuses for a reason of its own.
  std::vector<std::string> good, bad;
  std::vector<std::string> words;
  uint64_t state;
};

} // namespace takt::fuzz
