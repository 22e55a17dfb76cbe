//===- WriterTests.cpp - writing checkpoints ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What is written, when it becomes a checkpoint, and what failures leave
// behind.
//
//===----------------------------------------------------------------------===//

#include "CheckpointFixture.h"

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/checkpoint/restore.h"
#include "takt-rt/core/error.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <future>
#include <map>
#include <set>

#include <sys/resource.h>

namespace takt::rt::test {
namespace {

using Names = std::vector<std::string>;

class Writer : public CheckpointTest {};

TEST_F(Writer, EveryTensorIsWrittenOnce) {
  Plan plan = tinyPlan({2, 2});
  Arenas arenas(plan);
  CheckpointWriter writer(plan, options(), arenas.memory(), here);
  CheckpointOutcome outcome = save(writer, arenas, plan, 3);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.path, at(3));
  EXPECT_EQ(names(), Names{"step-00000003"});
  Checkpoint checkpoint = openCheckpoint(at(3), Check::Contents);
  EXPECT_EQ(checkpoint.manifest.step, 3);
  EXPECT_EQ(checkpoint.manifest.samples, 3 * plan.training.globalBatch);
  std::set<std::string> stored;
  for (const auto &[name, tensor] : checkpoint.tensors)
    stored.insert(name);
  EXPECT_EQ(stored,
            (std::set<std::string>{"fc0.bias", "fc0.bias.momentum",
                                   "fc0.weight", "fc0.weight.momentum",
                                   "fc1.weight", "fc1.weight.momentum"}));
  // What other tools read: the weights alone.
  auto index = nlohmann::json::parse(contentOf(at(3, kIndexFile)));
  EXPECT_EQ(index["metadata"]["total_size"],
            4 * (kTinyIn * kTinyHidden + kTinyHidden + kTinyHidden * kTinyOut));
  EXPECT_EQ(index["weight_map"].size(), 3u);
  for (const auto &[name, file] : index["weight_map"].items())
    EXPECT_EQ(at(3, file), checkpoint.tensors.at(name).file);
}

struct Layout {
  int32_t stages, replicas;
};

/// Any layout to any other, with every optimizer: each rank gets each tensor.
TEST_F(Writer, EveryLayoutLoadsEveryOther) {
  const Layout layouts[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {2, 4}};
  int64_t step = 0;
  for (OptimizerKind optimizer :
       {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::AdamW})
    for (const Layout &from : layouts) {
      TinyOptions shape;
      shape.optimizer = optimizer;
      shape.stages = from.stages;
      shape.replicas = from.replicas;
      Plan plan = tinyPlan(shape);
      Arenas arenas(plan);
      CheckpointOptions where = options();
      where.startStep = step++;
      CheckpointWriter writer(plan, where, arenas.memory(), here);
      ASSERT_EQ(save(writer, arenas, plan, step).error, "");
      Checkpoint checkpoint = openCheckpoint(at(step), Check::Contents);
      for (const Layout &to : layouts) {
        shape.stages = to.stages;
        shape.replicas = to.replicas;
        Plan other = tinyPlan(shape);
        EXPECT_TRUE(compare(checkpoint, other, "").fits());
        Arenas loaded(other);
        for (int32_t rank = 0; rank < other.numRanks(); ++rank)
          loadRank(checkpoint, other, rank, loaded.memory());
        loaded.forState([&](const std::string &name, size_t i, float value) {
          ASSERT_EQ(value, valueOf(name, i, step)) << name << " " << i;
        });
      }
    }
}

TEST_F(Writer, TheStateOfTheMomentIsSaved) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  CheckpointWriter writer(plan, options(), arenas.memory(), here);
  for (int64_t step = 1; step <= 20; ++step) {
    arenas.fill(step);
    writer.save(manifestAt(plan, step));
    arenas.fill(-step); // training goes on at once
  }
  writer.wait();
  EXPECT_EQ(writer.outcomes().size(), 20u);
  for (int64_t step = 1; step <= 20; ++step) {
    Arenas loaded(plan);
    Checkpoint checkpoint = openCheckpoint(at(step), Check::Contents);
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
      loadRank(checkpoint, plan, rank, loaded.memory());
    loaded.forState([&](const std::string &name, size_t i, float value) {
      ASSERT_EQ(value, valueOf(name, i, step));
    });
  }
}

TEST_F(Writer, KeepsTheNewest) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  CheckpointOptions two = options();
  two.keep = 2;
  {
    CheckpointWriter writer(plan, two, arenas.memory(), here);
    for (int64_t step : {1, 2, 3})
      EXPECT_EQ(save(writer, arenas, plan, step).warning, "");
  }
  EXPECT_EQ(names(), (Names{"step-00000002", "step-00000003"}));
  two.startStep = 3;
  CheckpointWriter writer(plan, two, arenas.memory(), here);
  EXPECT_EQ(names(), (Names{"step-00000002", "step-00000003"}));
  save(writer, arenas, plan, 4);
  EXPECT_EQ(names(), (Names{"step-00000003", "step-00000004"}));
}

/// A limit on file sizes, which fails a write as a full disk does.
class SizeLimit {
public:
  explicit SizeLimit(rlim_t bytes) {
    before = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    rlimit now = old;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, before);
  }

private:
  rlimit old;
  void (*before)(int);
};

TEST_F(Writer, AFailedWriteLeavesTheLastOne) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  CheckpointOptions one = options();
  one.keep = 1;
  CheckpointWriter writer(plan, one, arenas.memory(), here);
  ASSERT_EQ(save(writer, arenas, plan, 1).error, "");
  {
    // Enough for the first byte of a shard, for a shard but not the manifest...
    for (rlim_t bytes : {0, 1, 100, 600, 900}) {
      SizeLimit limit(bytes);
      CheckpointOutcome outcome = save(writer, arenas, plan, 2);
      EXPECT_NE(outcome.error.find("cannot write '" + folder + "/.step-"),
                std::string::npos)
          << bytes << ": " << outcome.error;
    }
  }
  EXPECT_EQ(names(), Names{"step-00000001"});
  openCheckpoint(at(1), Check::Contents);
  ASSERT_EQ(save(writer, arenas, plan, 2).error, "");
  EXPECT_EQ(names(), Names{"step-00000002"});
}

TEST_F(Writer, RefusesAFolderWithNewerCheckpoints) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  {
    CheckpointWriter writer(plan, options(), arenas.memory(), here);
    save(writer, arenas, plan, 3);
    save(writer, arenas, plan, 5);
  }
  auto open = [&](int64_t start) {
    return errorOf([&] {
      CheckpointOptions from = options();
      from.startStep = start;
      CheckpointWriter writer(plan, from, arenas.memory(), here);
    });
  };
  // The newest is named, from which '--resume' goes on.
  for (int64_t start : {0, 3, 4})
    EXPECT_NE(
        open(start).find(
            "holds checkpoints up to step 5, and this run begins at step " +
            std::to_string(start)),
        std::string::npos)
        << open(start);
  EXPECT_EQ(open(5), "");
  // One that is not whole is in nobody's way, and is not lost either.
  std::filesystem::remove(at(5, "model-00001-of-00002.safetensors"));
  EXPECT_NE(open(0).find("up to step 3"), std::string::npos);
  EXPECT_EQ(names(), (Names{"step-00000003", "step-00000005"}));
  EXPECT_EQ(open(4), "");
  EXPECT_EQ(names(), (Names{"broken-step-00000005", "step-00000003"}));
}

TEST_F(Writer, OneRunAtATime) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  CheckpointWriter writer(plan, options(), arenas.memory(), here);
  EXPECT_EQ(errorOf([&] {
              CheckpointWriter second(plan, options(), arenas.memory(), here);
            }),
            "another run writes its checkpoints to '" + folder + "'");
}

TEST_F(Writer, RemovesWhatWasLeftUnfinished) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  std::filesystem::create_directories(folder + "/.step-00000009.x.tmp");
  overwrite(folder + "/.step-00000009.x.tmp/model-00001-of-00002.safetensors",
            "half");
  std::filesystem::create_directories(folder + "/notes");
  CheckpointWriter writer(plan, options(), arenas.memory(), here);
  EXPECT_EQ(names(), Names{"notes"});
}

TEST_F(Writer, AFileInItsPlaceIsRefused) {
  Plan plan = tinyPlan({});
  Arenas arenas(plan);
  overwrite(folder, "a file");
  EXPECT_NE(errorOf([&] {
              CheckpointWriter writer(plan, options(), arenas.memory(), here);
            }).find("cannot make folder '" + folder + "'"),
            std::string::npos);
  std::filesystem::remove(folder);
}

TEST_F(Writer, TwoTensorsOfOneNameAreRefused) {
  Plan plan = tinyPlan({});
  plan.params[2].name = "fc0.weight.momentum";
  EXPECT_NE(errorOf([&] {
              checkpointShards(plan);
            }).find("'fc0.weight.momentum' of model"),
            std::string::npos);
}

/// Brings together writers that stand for processes.
class Meeting {
public:
  explicit Meeting(size_t processes) : processes(processes) {}

  class Seat final : public Gather {
  public:
    Seat(Meeting &meeting, size_t process)
        : meeting(meeting), process(process) {}
    bool commits() const override { return process == 0; }
    std::vector<std::string> gather(const std::string &topic,
                                    const std::string &report) override {
      return meeting.gather(process, topic, report);
    }

  private:
    Meeting &meeting;
    size_t process;
  };

private:
  std::vector<std::string> gather(size_t process, const std::string &topic,
                                  const std::string &report) {
    std::unique_lock<std::mutex> lock(mutex);
    reports[topic][process] = report;
    changed.notify_all();
    if (process != 0)
      return {};
    changed.wait(lock, [&] { return reports[topic].size() == processes; });
    std::vector<std::string> all;
    for (const auto &[number, text] : reports[topic])
      all.push_back(text);
    return all;
  }

  size_t processes;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::map<size_t, std::string>> reports;
};

TEST_F(Writer, IsWholeWhenEveryProcessHasReported) {
  Plan plan = tinyPlan({2, 1});
  Arenas arenas(plan);
  Meeting meeting(2);
  Meeting::Seat seats[] = {{meeting, 0}, {meeting, 1}};
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
  for (int32_t rank : {0, 1}) {
    CheckpointOptions own = options();
    own.ranks = {rank};
    writers.push_back(std::make_unique<CheckpointWriter>(
        plan, own, arenas.memory(), seats[rank]));
  }
  arenas.fill(1);
  writers[0]->save(manifestAt(plan, 1));
  EXPECT_TRUE(listCheckpoints(folder).empty());
  writers[1]->save(manifestAt(plan, 1));
  writers[0]->wait();
  EXPECT_EQ(names(), Names{"step-00000001"});
  EXPECT_EQ(openCheckpoint(at(1), Check::Contents).tensors.size(), 6u);

  // A folder in the place of a file of the second process.
  std::filesystem::create_directories(
      folder + "/.step-00000002.this.tmp/model-00002-of-00002.safetensors");
  for (std::unique_ptr<CheckpointWriter> &writer : writers)
    writer->save(manifestAt(plan, 2));
  for (std::unique_ptr<CheckpointWriter> &writer : writers) {
    writer->wait();
    EXPECT_NE(writer->outcomes().back().error.find("cannot create '" + folder +
                                                   "/.step-00000002.this.tmp/"),
              std::string::npos);
  }
  EXPECT_EQ(names(), Names{"step-00000001"});
}

} // namespace
} // namespace takt::rt::test
