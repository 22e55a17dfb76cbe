//===- CheckpointFixture.cpp - checkpoints of a small plan ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Paths and names.
//
//===----------------------------------------------------------------------===//

#include "CheckpointFixture.h"

#include "takt-rt/checkpoint/folder.h"

#include <algorithm>

namespace takt::rt::test {

std::string CheckpointTest::at(int64_t step, const std::string &file) const {
  std::string path = folder + "/" + checkpointName(step);
  return file.empty() ? path : path + "/" + file;
}

std::vector<std::string> CheckpointTest::names() const {
  std::vector<std::string> names;
  for (const auto &file : std::filesystem::directory_iterator(folder))
    if (file.path().filename() != ".lock")
      names.push_back(file.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace takt::rt::test
