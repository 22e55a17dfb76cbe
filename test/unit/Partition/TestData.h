//===- TestData.h - published inputs of tests -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Files of test/data, whole or as the layers of a profile.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/ProfileGraph.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace takt::test {

inline std::string readFile(const std::string &path) {
  std::ifstream stream(path);
  EXPECT_TRUE(stream.good()) << path;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The layers of a PipeDream or DAPPLE profile; `name` is below test/data.
inline std::vector<ProfiledNode> readProfile(const std::string &name) {
  Diagnostics diags;
  const auto nodes = readProfiledNodes(
      readFile(std::string(TAKT_TEST_DATA) + "/" + name), name, diags);
  EXPECT_TRUE(nodes.has_value()) << name;
  return nodes.value_or(std::vector<ProfiledNode>());
}

} // namespace takt::test
