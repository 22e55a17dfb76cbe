//===- LabelSearch.h - exact least sum under limits -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The exact counterpart of the relaxation: least sum of stage and transfer
// times under limits on times, all-reduces and memory, with positions, both
// sides of every boundary and the true number of micro-batches in flight.
//
// A label is a suffix of the chain that is already cut: the stages in it, the
// devices they use, the position of its first device in a node, the replicas of
// its first stage, and its sum. Labels grow towards the start of the chain, so
// that the number of stages behind a new one is known. A label is dropped when
// another one is no worse in every respect, or when the relaxation shows that
// no way to complete it beats the best answer known.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Relaxation.h"

#include <utility>

namespace takt::partition {

/// Open-addressing map from a key to the head of a list of labels.
class LabelIndex {
public:
  static constexpr int32_t kEmpty = -1;

  /// The head for a key, kEmpty when new. Valid until the next call.
  int32_t &head(uint64_t key);
  void clear();
  /// Keys and heads in ascending order of keys.
  std::vector<std::pair<uint64_t, int32_t>> sorted() const;

private:
  size_t slot(uint64_t key) const;
  void grow();

  std::vector<std::pair<uint64_t, int32_t>> slots;
  size_t used = 0;
};

class LabelSearch {
public:
  enum class Outcome { Found, None, OutOfWork };

  LabelSearch(const Chain &chain, const Relaxation &relaxation)
      : chain(chain), relaxation(relaxation), boundaries(chain.size() + 1) {}

  /// Looks for the least sum among assignments within the limits whose
  /// sum + `base` is below `below`. The relaxation must have been solved for
  /// the same or wider limits.
  Outcome run(const Limits &limits, Nanos base, Nanos below, WorkMeter &meter);

  /// After Found.
  const Stages &stages() const { return best; }
  Nanos sum() const { return bestSum; }

private:
  struct Label {
    Nanos sum;
    int32_t devices; ///< used by the suffix
    int32_t count;   ///< its stages
    int32_t end;     ///< of its first stage
    int32_t option;  ///< of its first stage
    int32_t parent;  ///< the suffix behind that stage
    int32_t next;    ///< in the list of its key
  };
  /// Labels that agree in position and option, and what a new stage before them
  /// pays.
  struct Bundle {
    int32_t position, option;
    std::vector<int32_t> labels;
    int32_t newPosition = 0;
    Nanos across = 0;
    bool network = false; ///< the new stage crosses nodes
  };

  std::vector<Bundle> bundles(int32_t at);
  void dropDominated(std::vector<int32_t> &labels) const;
  bool admitStage(Bundle &bundle, int32_t at, int32_t option) const;
  void extend(std::vector<Bundle> &bundles, int32_t at, int32_t option);
  void offer(const Label &label, int32_t begin, int32_t position);
  void finish(const Label &label, int32_t position);
  bool hopeless(const Label &label, int32_t begin, int32_t position) const;
  bool dominates(const Label &a, const Label &b) const;
  void insert(const Label &label, int32_t begin, int32_t position);
  void collect(const Label &first);

  const Chain &chain;
  const Relaxation &relaxation;
  std::vector<LabelIndex> boundaries; ///< by first group of the suffix
  std::vector<Label> labels;
  Limits limits;
  Nanos base = 0, below = kNever;
  WorkMeter *work = nullptr;
  Stages best;
  Nanos bestSum = kNever;
};

} // namespace takt::partition
