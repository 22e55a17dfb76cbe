//===- mutator.cpp - damaged copies of good inputs --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Changes to bits and ranges for binary formats, to numbers, tokens and lines
// for text. Which of them make sense is not asked: a reader has to stand all.
//
//===----------------------------------------------------------------------===//
#include "mutator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

namespace takt::fuzz {

namespace {

/// Values at which counters, sizes and indices go wrong.
const char *const kDecimals[] = {"0",
                                 "-1",
                                 "1",
                                 "2",
                                 "7",
                                 "63",
                                 "64",
                                 "255",
                                 "256",
                                 "65535",
                                 "65536",
                                 "1000000",
                                 "2147483647",
                                 "2147483648",
                                 "4294967295",
                                 "4294967296",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "18446744073709551615",
                                 "99999999999999999999999",
                                 "-9223372036854775808",
                                 "0.5",
                                 "1e308",
                                 "1e-320",
                                 "1e999",
                                 "nan",
                                 "inf",
                                 "-inf"};

constexpr uint64_t kBinaries[] = {0,
                                  1,
                                  2,
                                  0x7f,
                                  0x80,
                                  0xff,
                                  0x7fff,
                                  0x8000,
                                  0xffff,
                                  0x10000,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  0x100000000,
                                  0x7fffffffffffffff,
                                  0x8000000000000000,
                                  0x7ff0000000000000, // infinity
                                  0x7ff8000000000000, // not a number
                                  0xffffffffffffffff};

bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool isOfToken(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_';
}

} // namespace

/// splitmix64 (Steele, Lea and Flood 2014).
uint64_t Mutator::random() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Mostly what is good: one fault in it leads deepest.
const std::string &Mutator::pick() {
  return bad.empty() || below(4) ? good[below(good.size())]
                                 : bad[below(bad.size())];
}

std::string Mutator::next() {
  std::string data = pick();
  size_t changes = 1;
  while (changes < 8 && below(3) == 0)
    ++changes;
  for (size_t i = 0; i < changes; ++i)
    change(data);
  if (data.size() > kLargest)
    data.resize(kLargest);
  return data;
}

void Mutator::keep(std::string mutant, bool isGood) {
  constexpr size_t kMostKept = 2048;
  std::vector<std::string> &pool = isGood ? good : bad;
  if (pool.size() < kMostKept)
    pool.push_back(std::move(mutant));
}

void Mutator::change(std::string &data) {
  using Change = void (Mutator::*)(std::string &);
  static constexpr Change kChanges[] = {
      &Mutator::flipBit,      &Mutator::flipBit,      &Mutator::truncate,
      &Mutator::removeRange,  &Mutator::repeatRange,  &Mutator::splice,
      &Mutator::tweakDecimal, &Mutator::tweakDecimal, &Mutator::tweakDecimal,
      &Mutator::tweakBinary,  &Mutator::tweakBinary,  &Mutator::insertWord,
      &Mutator::replaceToken, &Mutator::replaceToken, &Mutator::moveLine,
      &Mutator::moveLine};
  (this->*kChanges[below(std::size(kChanges))])(data);
}

void Mutator::flipBit(std::string &data) {
  if (!data.empty())
    data[below(data.size())] ^= static_cast<char>(1 << below(8));
}

/// Mostly near the end: a file cut short.
void Mutator::truncate(std::string &data) {
  size_t cut = below(2) ? below(data.size() + 1)
                        : below(std::min<size_t>(data.size(), 64) + 1);
  data.resize(data.size() - cut);
}

void Mutator::removeRange(std::string &data) {
  size_t at = below(data.size() + 1);
  data.erase(at, 1 + below(64));
}

void Mutator::repeatRange(std::string &data) {
  size_t at = below(data.size() + 1);
  std::string range = data.substr(at, 1 + below(64));
  size_t times = below(8) ? 1 : 1 + below(200);
  std::string all;
  for (size_t i = 0; i < times; ++i)
    all += range;
  data.insert(at, all);
}

void Mutator::splice(std::string &data) {
  const std::string &other = pick();
  data = data.substr(0, below(data.size() + 1)) +
         other.substr(below(other.size() + 1));
}

void Mutator::tweakDecimal(std::string &data) {
  size_t at = below(data.size());
  at = static_cast<size_t>(
      std::find_if(data.begin() + static_cast<std::ptrdiff_t>(at), data.end(),
                   isDigit) -
      data.begin());
  if (at == data.size())
    return;
  size_t begin = at, end = at;
  while (begin > 0 && isDigit(data[begin - 1]))
    --begin;
  while (end < data.size() && isDigit(data[end]))
    ++end;
  switch (below(5)) {
  case 0: // one more or less
    data[end - 1] = static_cast<char>('0' + (data[end - 1] - '0' + 9) % 10);
    break;
  case 1:
    data[end - 1] = static_cast<char>('0' + (data[end - 1] - '0' + 1) % 10);
    break;
  case 2:
    data.insert(end, 1 + below(6), '0');
    break;
  case 3: // another number of the same input
    replaceByOther(data, begin, end);
    break;
  default:
    data.replace(begin, end - begin, kDecimals[below(std::size(kDecimals))]);
  }
}

void Mutator::replaceByOther(std::string &data, size_t begin, size_t end) {
  size_t from = data.find_first_of("0123456789", below(data.size()));
  if (from == std::string::npos)
    return;
  size_t to = std::min(data.find_first_not_of("0123456789", from), data.size());
  data.replace(begin, end - begin, data.substr(from, to - from));
}

void Mutator::tweakBinary(std::string &data) {
  size_t bytes = size_t(1) << below(4);
  if (data.size() < bytes)
    return;
  size_t at = below(data.size() / bytes) * bytes;
  uint64_t value = 0;
  std::memcpy(&value, data.data() + at, bytes);
  switch (below(3)) {
  case 0:
    value += 1 + below(16);
    break;
  case 1:
    value -= 1 + below(16);
    break;
  default:
    value = kBinaries[below(std::size(kBinaries))];
  }
  std::memcpy(data.data() + at, &value, bytes);
}

void Mutator::insertWord(std::string &data) {
  if (!words.empty())
    data.insert(below(data.size() + 1), words[below(words.size())]);
}

void Mutator::replaceToken(std::string &data) {
  auto [begin, end] = token(data);
  auto [otherBegin, otherEnd] = token(data);
  std::string with = words.empty() || below(2)
                         ? data.substr(otherBegin, otherEnd - otherBegin)
                         : words[below(words.size())];
  data.replace(begin, end - begin, with);
}

/// Copies, removes or moves a line.
void Mutator::moveLine(std::string &data) {
  auto [begin, end] = line(data);
  std::string text = data.substr(begin, end - begin);
  size_t how = below(3);
  if (how != 0)
    data.erase(begin, end - begin);
  if (how != 1)
    data.insert(line(data).first, text);
}

std::pair<size_t, size_t> Mutator::token(const std::string &data) {
  size_t begin = below(data.size()), end = begin;
  while (begin > 0 && isOfToken(data[begin - 1]))
    --begin;
  while (end < data.size() && isOfToken(data[end]))
    ++end;
  return {begin, end};
}

std::pair<size_t, size_t> Mutator::line(const std::string &data) {
  size_t begin = below(data.size());
  while (begin > 0 && data[begin - 1] != '\n')
    --begin;
  size_t end = data.find('\n', begin);
  return {begin, end == std::string::npos ? data.size() : end + 1};
}

} // namespace takt::fuzz
