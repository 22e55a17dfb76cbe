//===- Antichains.h - the states that PipeDream cuts at ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// PipeDream (Narayanan et al. 2019, SOSP, arXiv 1806.03377) makes a chain-like
// axis of a graph of layers: its states are antichains, sets of layers none of
// which is an ancestor of another, and each stands for all layers up to it.
// From the first source on, one layer of a state gives way to one of its
// readers. That reaches only some of all down-sets (99 of gnmt's 562), so
// answers on these states can be worse than those of
// `takt/Partition/GraphProblem.h`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// A layer as a profile knows it: of one minibatch on one device.
struct ProfiledNode {
  std::string name;
  double forward = 0, backward = 0; ///< seconds
  double outputBytes = 0, parameterBytes = 0;
  std::vector<int32_t> readers;

  double seconds() const { return forward + backward; }
};

/// Everything up to an antichain.
struct ProfileState {
  std::vector<int32_t> nodes; ///< covered, ascending
  double seconds = 0, activationBytes = 0, parameterBytes = 0; ///< of `nodes`
  double outputBytes = 0; ///< what crosses a cut behind the state
  /// States that come before this one, ascending; all have smaller indices.
  std::vector<int32_t> before;
};

/// The states of an acyclic graph in a topological order; the one of `first`, a
/// source, comes first. Outputs are counted as PipeDream does: of the
/// antichain, and of every ancestor that has a reader which is neither a member
/// nor an ancestor of the same member. Nothing above `maxStates`, or if no last
/// state covers all.
std::optional<std::vector<ProfileState>>
antichainStates(const std::vector<ProfiledNode> &nodes, int32_t first,
                int64_t maxStates = 4096);

/// One state a node, of nodes in the order of a chain; readers are not asked.
std::vector<ProfileState> chainStates(const std::vector<ProfiledNode> &nodes);

} // namespace takt
