//===- hosts.h - a list of hosts that ranks run on --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// --hosts a:8,b:8: ranks 0 to 7 on host a, 8 to 15 on host b. On its own it
// prints what to start where; with --node it starts the ranks of that host.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "launch.h"

#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::run {

struct Host {
  std::string name;
  int32_t ranks = 1;
};

/// Throws `rt::Error` (Usage) that names the entry that is none.
std::vector<Host> parseHosts(const std::string &list);

/// The ranks of a host, by its place in the list. Throws `rt::Error` (Usage)
/// when there is no such place.
LocalRanks ranksOfHost(const std::vector<Host> &hosts, int32_t node,
                       const std::string &rendezvous);

/// A shell script that starts the ranks of all hosts over ssh, each by the
/// arguments of this program and its place, and ends with the code of one that
/// failed.
std::string startScript(const std::vector<Host> &hosts, char **arguments);

/// What the layout makes of the plan's nodes; empty: what the plan reckons
/// with.
std::string layoutWarning(const std::vector<Host> &hosts, const rt::Plan &plan);

} // namespace takt::run
