//===- Bits.h - sets of small numbers as words ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A set of n numbers is `wordsFor(n)` words, kept by whoever owns many of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace takt::graphcut {

using Word = uint64_t;
using Bits = std::vector<Word>;

inline int32_t wordsFor(int32_t n) { return (n + 63) / 64; }
inline bool has(const Word *set, int32_t i) {
  return (set[i >> 6] >> (i & 63)) & 1;
}
inline void put(Word *set, int32_t i) { set[i >> 6] |= Word(1) << (i & 63); }
inline void drop(Word *set, int32_t i) {
  set[i >> 6] &= ~(Word(1) << (i & 63));
}

inline bool meets(const Word *a, const Word *b, int32_t words) {
  for (int32_t w = 0; w < words; ++w)
    if (a[w] & b[w])
      return true;
  return false;
}

/// Whether some member of `a` lies outside `b`.
inline bool leaves(const Word *a, const Word *b, int32_t words) {
  for (int32_t w = 0; w < words; ++w)
    if (a[w] & ~b[w])
      return true;
  return false;
}

/// Whether some member of `a` but `i` lies outside `b`.
inline bool leavesBut(const Word *a, const Word *b, int32_t words, int32_t i) {
  for (int32_t w = 0; w < words; ++w) {
    Word rest = a[w] & ~b[w];
    if (w == i >> 6)
      rest &= ~(Word(1) << (i & 63));
    if (rest)
      return true;
  }
  return false;
}

template <typename Visit>
void forEach(const Word *set, int32_t words, Visit visit) {
  for (int32_t w = 0; w < words; ++w)
    for (Word rest = set[w]; rest != 0; rest &= rest - 1)
      visit(w * 64 + int32_t(__builtin_ctzll(rest)));
}

} // namespace takt::graphcut
