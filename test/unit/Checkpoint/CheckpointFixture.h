//===- CheckpointFixture.h - checkpoints of a small plan --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Writes checkpoints of TinyPlan without training: every element of the state
// has a value by its tensor's name, so that it is known wherever it comes back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Host/TinyPlan.h"

#include "takt-rt/checkpoint/writer.h"
#include "takt-rt/data/random.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace takt::rt::test {

inline float valueOf(const std::string &name, size_t i, int64_t step = 0) {
  return float(normal(streamKey(uint64_t(step), name), i));
}

/// The arenas of all ranks of a plan.
class Arenas {
public:
  explicit Arenas(const Plan &plan) : plan(plan) {
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
      arenas.emplace_back(plan.roles[plan.roleOf(rank)].arenaBytes / 4, -7.0f);
  }
  StateMemory memory() {
    return [this](int32_t rank, const BufferRef &ref) { return at(rank, ref); };
  }
  float *at(int32_t rank, const BufferRef &ref) {
    const Role &role = plan.roles[plan.roleOf(rank)];
    return arenas[rank].data() + (role.pools[ref.pool].base + ref.offset) / 4;
  }
  /// Calls `each(name, element, value)` for the state of every rank.
  template <typename Each>
  void forState(Each each) {
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
      for (const StateTensor &tensor :
           stateOfRole(plan, plan.roles[plan.roleOf(rank)]))
        for (const BufferRef &place : tensor.places)
          for (Bytes i = 0; i < place.bytes / 4; ++i)
            each(tensor.name, size_t(i), at(rank, place)[i]);
  }
  void fill(int64_t step) {
    forState([&](const std::string &name, size_t i, float &value) {
      value = valueOf(name, i, step);
    });
  }

private:
  const Plan &plan;
  std::vector<std::vector<float>> arenas;
};

class CheckpointTest : public testing::Test {
protected:
  CheckpointTest() {
    const testing::TestInfo *info =
        testing::UnitTest::GetInstance()->current_test_info();
    folder =
        (std::filesystem::path(testing::TempDir()) /
         (std::string("takt-") + info->test_suite_name() + "-" + info->name()))
            .string();
    std::filesystem::remove_all(folder);
  }
  ~CheckpointTest() override { std::filesystem::remove_all(folder); }

  CheckpointOptions options() const {
    CheckpointOptions options;
    options.folder = folder;
    options.writer = "test";
    options.run = "this";
    return options;
  }
  static Manifest manifestAt(const Plan &plan, int64_t step) {
    Manifest manifest = manifestOf(plan, "0123456789abcdef");
    manifest.step = step;
    manifest.samples = step * plan.training.globalBatch;
    return manifest;
  }
  /// Saves the state of `fill(step)` and returns what became of it.
  CheckpointOutcome save(CheckpointWriter &writer, Arenas &arenas,
                         const Plan &plan, int64_t step) {
    arenas.fill(step);
    writer.save(manifestAt(plan, step));
    writer.wait();
    std::vector<CheckpointOutcome> outcomes = writer.outcomes();
    EXPECT_EQ(outcomes.size(), 1u);
    return outcomes.empty() ? CheckpointOutcome() : outcomes.front();
  }
  std::string at(int64_t step, const std::string &file = "") const;
  /// Names in the folder but for the lock, in order.
  std::vector<std::string> names() const;

  std::string folder;
  GatherHere here;
};

inline std::string contentOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

inline void overwrite(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// The message of the `Error` that `run` throws; empty without one.
template <typename Run>
std::string errorOf(Run run) {
  try {
    run();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

} // namespace takt::rt::test
