//===- NearestName.cpp - "did you mean" -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Edit distance by dynamic programming over three rows.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/NearestName.h"

#include <algorithm>
#include <cctype>

using namespace takt;

std::size_t takt::editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t substitute = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string takt::nearestName(std::string_view name,
                              const std::vector<std::string> &candidates) {
  constexpr std::size_t kLongest = 64;
  auto lower = [](std::string_view text) {
    std::string result(text);
    for (char &c : result)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  if (name.empty() || name.size() > kLongest)
    return "";
  std::string wanted = lower(name), best;
  std::size_t bestDistance = 0;
  for (const std::string &candidate : candidates) {
    if (candidate.size() > kLongest)
      continue;
    std::size_t distance = editDistance(wanted, lower(candidate));
    // Short names may differ in one place, long ones in a third of them.
    std::size_t allowed =
        std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
    if (distance > allowed || (distance > 0 && candidate.size() == 1))
      continue;
    if (best.empty() || distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string takt::nearestHint(std::string_view name,
                              const std::vector<std::string> &candidates) {
  std::string nearest = nearestName(name, candidates);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}
