//===- FileTest.cpp - binary and text forms of plans ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Both forms lose nothing, and no damaged file does more than raise an error.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include <unistd.h>

using namespace takt::rt;
using namespace takt::rt::test;

/// A plan in which every field differs from its default.
static Plan makeFullPlan() {
  PipelineShape shape;
  shape.stages = 3;
  shape.replicas = {2, 1, 3};
  shape.splitBackward = true;
  shape.update = 5;
  shape.link = {"nv \"link\" \\ é", 1500, 25e9 / 3};
  Plan plan = makePipeline(shape);
  plan.inputHash = "abc";
  plan.training.seed = ~0ull;
  plan.training.learningRate = 1.0 / 3;
  plan.training.momentum = 0.1;
  plan.training.beta1 = 0.2;
  plan.training.beta2 = 0.3;
  plan.training.epsilon = 1e-30;
  plan.training.weightDecay = 0.5;
  plan.training.schedule = LrSchedule::Cosine;
  plan.training.warmupSteps = 3;
  plan.training.totalSteps = 1ll << 40;
  plan.training.minLearningRate = 1e-300;
  plan.inputs[0].dtype = DType::Int32;
  plan.inputs[0].classes = 77;
  plan.layers[1].name = "a name with spaces";
  plan.params[0].name = "odd \"name\"";
  plan.params.push_back({"extra", {}, InitKind::Uniform, 0.1, false});
  plan.predictedStep = 11;
  plan.boundStep = 9;
  plan.objectiveStep = 10;
  plan.roles[1].capacity = 80ll << 30;
  NodeResources nodes;
  nodes.nodes = 3;
  nodes.devices = 2;
  nodes.cores = 4;
  nodes.copyEngines = 5;
  nodes.transferShare = 0.1;
  nodes.memoryBytesPerSecond = 1e12 / 3;
  nodes.portBytesPerSecond = 6;
  nodes.networkBytesPerSecond = 7;
  nodes.networkPorts = 8;
  nodes.kind = "a \"kind\"";
  nodes.price = 1234567;
  plan.resources = {nodes, nodes};
  plan.resources[1].kind = "plain";
  plan.resources[1].price = 0;
  return plan;
}

static std::string failureOf(const std::vector<uint8_t> &bytes) {
  try {
    deserialize(bytes, "f");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(PlanHash, IsEqualForEqualPlansOnly) {
  Plan plan = makeFullPlan();
  EXPECT_EQ(planHash(plan), planHash(deserialize(serialize(plan), "again")));
  uint64_t before = planHash(plan);
  plan.training.seed ^= 1;
  EXPECT_NE(planHash(plan), before);
  EXPECT_EQ(planHashText(0xabc), "0000000000000abc");
}

TEST(PlanFile, BinaryRoundTrip) {
  Plan plan = makeFullPlan();
  ASSERT_TRUE(checkStructure(plan).empty()) << checkStructure(plan)[0];
  std::vector<uint8_t> bytes = serialize(plan);
  Plan again = deserialize(bytes, "f");
  EXPECT_EQ(serialize(again), bytes);
  // A field that both directions forget would pass the line above.
  EXPECT_EQ(toText(again), toText(plan));
  EXPECT_EQ(std::string(bytes.begin() + 4, bytes.begin() + 8), "TAKT");
}

TEST(PlanFile, BytesMayStandAtAnyAddress) {
  std::vector<uint8_t> bytes = serialize(makeFullPlan());
  std::vector<uint8_t> shifted(bytes.size() + 3);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 3);
  EXPECT_EQ(serialize(deserialize(shifted.data() + 3, bytes.size(), "f")),
            bytes);
}

TEST(PlanFile, TextRoundTrip) {
  Plan plan = makeFullPlan();
  std::string text = toText(plan);
  Plan again = parsePlanText(text, "f");
  EXPECT_EQ(toText(again), text);
  EXPECT_EQ(serialize(again), serialize(plan));
}

TEST(PlanFile, TextReadsWell) {
  PipelineShape shape;
  shape.microBatches = 1;
  std::string text = toText(makePipeline(shape));
  for (const char *line :
       {"takt-plan 1.2\n", "role stage1 {\n",
        "channel act0 activation stage0 -> stage1 bytes 768 link \"\" latency "
        "0 bandwidth 0\n",
        "    linear_forward forward layer 0 (batch+0:768, weights+0:1024, "
        "output+0:768) [12, 16, 16, 0]  # linear0\n",
        "    call 1.F 0 after load:1, recv_act:1          # 1F0\n",
        "    recv act0 0                                  # 1RECV_F0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(PlanFile, TextErrorsNameLineAndColumn) {
  std::string text = toText(makePipeline(PipelineShape()));
  auto failure = [&](const std::string &from, const std::string &to) {
    std::string broken = text;
    size_t at = broken.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    try {
      parsePlanText(broken.replace(at, from.size(), to), "p");
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(failure("model", "modle"), "p:2:1: unknown statement 'modle'");
  EXPECT_EQ(failure("seed 0", "seed -1"),
            "p:15:8: expected an integer of at most 64 bits, not negative");
  EXPECT_EQ(failure("optimizer sgd", "optimizer sdg"),
            "p:16:13: unknown optimizer 'sdg'");
  EXPECT_EQ(failure("takt-plan 1.2", "takt-plan 2.0"),
            "p:1:11: written in plan format 2.0, this program reads 1.x");
  EXPECT_EQ(failure("-> stage1", "-> stage9"), "p:36:35: no role 'stage9'");
  EXPECT_EQ(failure("\"linear-chain\"", "\"linear"),
            "p:2:7: the string does not end on its line");
  EXPECT_EQ(failure("after load:1", "after laod:1").substr(0, 2), "p:");
  EXPECT_NE(failure("micro_batches 4", "micro_batches 5")
                .find("p: global "
                      "batch 48"),
            std::string::npos);
}

TEST(PlanFile, NewerFormatAndFeaturesAreRefused) {
  Plan plan = makePipeline(PipelineShape());
  plan.requiredFeatures = {"time-travel"};
  EXPECT_EQ(failureOf(serialize(plan)),
            "f: needs the feature 'time-travel', which this program does not "
            "know");
  EXPECT_EQ(failureOf({}), "f: too short to be a plan");
  EXPECT_EQ(failureOf(std::vector<uint8_t>(100, 7)),
            "f: not a plan file (no 'TAKT' at byte 4)");
}

TEST(PlanFile, TruncationIsAnError) {
  std::vector<uint8_t> bytes = serialize(makePipeline(PipelineShape()));
  for (size_t size = 0; size < bytes.size(); size += 3)
    EXPECT_NE(failureOf({bytes.begin(), bytes.begin() + size}), "") << size;
}

// Damage that leaves a plan in order is found by the checksum at the end.
TEST(PlanFile, AnyDamageIsFound) {
  std::vector<uint8_t> bytes = serialize(makePipeline(PipelineShape()));
  ASSERT_EQ(failureOf(bytes), "");
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] ^= uint8_t(1 << bit);
      EXPECT_NE(failureOf(damaged), "") << "bit " << bit << " of byte " << at;
    }
  for (size_t size = bytes.size(); size-- > bytes.size() - 64;)
    EXPECT_NE(failureOf({bytes.begin(), bytes.begin() + size}), "") << size;
  for (const char *junk : {"x", "CRCC0000", "the end of another file"}) {
    std::vector<uint8_t> longer = bytes;
    longer.insert(longer.end(), junk, junk + std::strlen(junk));
    EXPECT_NE(failureOf(longer), "") << junk;
  }
  std::vector<uint8_t> damaged = bytes;
  damaged[100] ^= 1;
  std::string size = std::to_string(bytes.size() - 8);
  EXPECT_EQ(failureOf(damaged).find("f: damaged: the checksum of its first " +
                                    size + " bytes is "),
            0u)
      << failureOf(damaged);
  EXPECT_EQ(failureOf({bytes.begin(), bytes.end() - 8}),
            "f: damaged: no checksum ends it at byte " + size +
                ": it is cut short or something follows it");
}

// A file of a time before checksums has neither the sum nor the flag.
TEST(PlanFile, OlderFilesHaveNoChecksum) {
  Plan plan = makePipeline(PipelineShape());
  std::vector<uint8_t> bytes = serialize(plan);
  bytes.resize(bytes.size() - 8);
  int read = 0;
  for (uint8_t &byte : bytes) {
    if (byte != 1)
      continue;
    byte = 0;
    if (failureOf(bytes).empty() &&
        toText(deserialize(bytes, "f")) == toText(plan))
      ++read;
    byte = 1;
  }
  EXPECT_EQ(read, 1);
}

/// The bytes with a checksum that fits them.
static std::vector<uint8_t> summed(std::vector<uint8_t> bytes) {
  size_t end = bytes.size() - 4;
  uint32_t sum = crc32c(0, bytes.data(), end - 4);
  for (int i = 0; i < 4; ++i)
    bytes[end + i] = uint8_t(sum >> 8 * i);
  return bytes;
}

// Whatever a byte turns into, reading ends with a plan or an error; a plan that
// is read can be written in both forms. The checksum fits, or it would be all
// that is read.
TEST(PlanFile, DamageNeverCrashes) {
  PipelineShape shape;
  shape.replicas = {1, 2};
  std::vector<uint8_t> bytes = serialize(makePipeline(shape));
  size_t refused = 0, tried = 0;
  for (size_t at = 0; at < bytes.size() - 8; ++at)
    for (uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] ^= flip;
      damaged = summed(damaged);
      ++tried;
      try {
        Plan plan = deserialize(damaged, "f");
        EXPECT_FALSE(toText(plan).empty());
        serialize(plan);
      } catch (const Error &) {
        ++refused;
      }
    }
  EXPECT_GT(refused, tried / 4);
}

TEST(PlanFile, DamagedTextNeverCrashes) {
  std::string text = toText(makePipeline(PipelineShape()));
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    damaged[random() % text.size()] = "0{}[]\",:+-#z\n\\"[random() % 14];
    if (i % 3 == 0)
      damaged.resize(random() % text.size());
    try {
      serialize(parsePlanText(damaged, "f"));
    } catch (const Error &) {
    }
  }
}

TEST(PlanFile, FilesInEitherForm) {
  std::string path =
      testing::TempDir() + "takt_file_test." + std::to_string(getpid());
  Plan plan = makeFullPlan();
  writePlan(plan, path);
  EXPECT_EQ(serialize(readPlan(path)), serialize(plan));
  writeFile(path, toText(plan));
  EXPECT_EQ(serialize(readPlan(path)), serialize(plan));
  writeFile(path, "hello");
  EXPECT_THROW(readPlan(path), Error);
  EXPECT_EQ(unlink(path.c_str()), 0);
  EXPECT_THROW(readPlan(path), Error);
  EXPECT_THROW(writePlan(plan, "/nonexistent/folder/x.plan"), Error);
}

// 64 roles of 128 micro-batches and 960 layers of four kernels: below 2 MB.
TEST(PlanFile, StaysSmall) {
  PipelineShape shape;
  shape.stages = 64;
  shape.microBatches = 128;
  Plan plan = makePipeline(shape);
  for (Role &role : plan.roles)
    for (Procedure &procedure : role.procedures) {
      std::vector<Kernel> one = procedure.kernels;
      for (int i = 1; i < 15; ++i)
        for (Kernel kernel : one) {
          for (BufferRef &operand : kernel.operands)
            operand.offset += 64 * i; // buffers of its own, as real layers have
          procedure.kernels.push_back(kernel);
        }
    }
  EXPECT_LT(serialize(plan).size(), 1'700'000u);
}
