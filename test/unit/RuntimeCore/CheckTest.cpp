//===- CheckTest.cpp - the structural check ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One fault planted a line, and the sentence that names it; then random damage
// to a plan in memory, which must never be worse than a list of sentences.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/kernel_shape.h"
#include "takt-rt/core/names.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

using namespace takt::rt;
using namespace takt::rt::test;

static constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

/// The first fault of a plan after the damage.
static std::string faultAfter(const std::function<void(Plan &)> &damage) {
  PipelineShape shape;
  shape.replicas = {1, 2};
  Plan plan = makePipeline(shape);
  EXPECT_TRUE(checkStructure(plan).empty()) << checkStructure(plan)[0];
  damage(plan);
  std::vector<std::string> faults = checkStructure(plan);
  return faults.empty() ? "" : faults.front();
}

#define EXPECT_FAULT(SENTENCE, DAMAGE)                                         \
  EXPECT_EQ(faultAfter([](Plan &p) { DAMAGE; }), SENTENCE)

TEST(CheckStructure, PlanLevel) {
  EXPECT_FAULT("the plan has no roles", p.roles.clear());
  EXPECT_FAULT("global batch 48 does not divide into 5 micro-batches",
               p.training.microBatches = 5);
  EXPECT_FAULT("global batch 48 and micro-batches 0 must be positive",
               p.training.microBatches = 0);
  EXPECT_FAULT("a number of the training settings is not finite",
               p.training.beta1 = std::numeric_limits<double>::quiet_NaN());
  EXPECT_FAULT("unknown optimizer or learning-rate schedule",
               p.training.optimizer = static_cast<OptimizerKind>(9));
  EXPECT_FAULT("parameter 'linear0.weight': bad shape",
               p.params[0].shape = (std::vector<int64_t>{kHuge, kHuge}));
  EXPECT_FAULT("two roles are named 'stage0'", p.roles[1].name = "stage0");
  EXPECT_FAULT("model name 'a?b' is not plain text", p.model = "a\nb");
  EXPECT_FAULT("model name 'a?' is not plain text", p.model = "a\xff");
  EXPECT_FAULT("role 'stage1': first rank is 7, expected 1",
               p.roles[1].firstRank = 7);
  EXPECT_FAULT("role 'stage1': 0 replicas", p.roles[1].replicas = 0);
  EXPECT_FAULT("role 'stage1': 2 devices for 5 replicas",
               p.roles[1].replicas = 5);
  EXPECT_FAULT("channel 'act0': no such role", p.channels[0].srcRole = 9);
  EXPECT_FAULT("channel 'act0': both ends are the same role",
               p.channels[0].dstRole = 0);
  EXPECT_FAULT("channel 'act0': 769 bytes do not divide over 2 replicas",
               p.channels[0].bytes = 769);
  EXPECT_FAULT("channel 'act0': latency of -1 ns",
               p.channels[0].link.latency = -1);
  EXPECT_FAULT("group 'reduce1': no such role", p.groups[0].role = 4);
}

TEST(CheckStructure, Memory) {
  EXPECT_FAULT("role 'stage0': pool 'weights': 1 x 1024 bytes at "
               "9223372036854775744 leave the arena of 12032 bytes",
               p.roles[0].pools[0].base = kHuge - 63);
  EXPECT_FAULT("role 'stage0': pool 'weights': 2147483647 x 1024 bytes "
               "at 0 leave the arena of 12032 bytes",
               p.roles[0].pools[0].count = std::numeric_limits<int32_t>::max());
  EXPECT_FAULT("role 'stage0': pools 'gradients' and 'batch' overlap",
               p.roles[0].pools[2].base -= 64);
  EXPECT_FAULT("role 'stage0': pool 'batch': slot 4 of 4",
               p.roles[0].pools[2].slotOf[1] = 4);
  EXPECT_FAULT("role 'stage0': pool 'batch': slots of 3 micro-batches, the "
               "step has 4",
               p.roles[0].pools[2].slotOf.pop_back());
  EXPECT_FAULT("role 'stage0': pool 'weights': base 1 or slot size 1024 is not "
               "a multiple of 64 bytes",
               p.roles[0].pools[0].base = 1);
  EXPECT_FAULT("role 'stage1': the loss pool has no slot for each micro-batch",
               p.roles[1].pools.back().slotOf[1] = 0);
}

TEST(CheckStructure, Kernels) {
  auto &&kernel = [](Plan &p) -> Kernel & {
    return p.roles[0].procedures[0].kernels[0];
  };
  const std::string at = "role 'stage0': procedure 'F': kernel 0: ";
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).operands[0].pool = 99; }),
            at + "no pool 99");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).operands[0].offset = 64; }),
            at + "768 bytes at 64 leave a slot of pool 'batch' of 768 bytes");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).operands[0].bytes = -4; }),
            at + "-4 bytes at 0 leave a slot of pool 'batch' of 768 bytes");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).dims[0] = 13; }),
            at + "operand 0 of 'linear_forward' has 768 bytes, needs 832");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).dims[1] = kHuge; }),
            at + "dim 1 of kernel 'linear_forward' is 9223372036854775807");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).dims[0] = 0; }),
            at + "dim 0 of kernel 'linear_forward' is 0");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).dims[3] = 1; }),
            at + "kernel 'linear_forward' takes 4 operands, not 3");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).dims.pop_back(); }),
            at + "kernel 'linear_forward' takes 4 dims, not 3");
  EXPECT_EQ(faultAfter([&](Plan &p) { kernel(p).layer = 3; }),
            at + "no layer 3");
  EXPECT_EQ(faultAfter([&](Plan &p) {
              kernel(p).kind = static_cast<KernelKind>(200);
            }),
            at + "unknown kind or phase");
}

TEST(CheckStructure, RolesAndLanes) {
  EXPECT_FAULT("role 'stage0': channel 'act0': endpoint has 704 bytes, its "
               "pieces have 768",
               p.roles[0].channels[0].buffer.bytes = 704);
  EXPECT_FAULT("role 'stage1': endpoint of channel 0: endpoints are not in "
               "ascending order",
               std::swap(p.roles[1].channels[0], p.roles[1].channels[1]));
  EXPECT_FAULT("role 'stage0': load of 'y': no such input",
               p.roles[0].loads[0].input = "y");
  EXPECT_FAULT("role 'stage0': no parameter 5", p.roles[0].params[0].param = 5);
  EXPECT_FAULT("role 'stage0': parameter 'linear0.weight': is frozen but has "
               "gradients or optimizer state",
               p.params[0].trainable = false);
  EXPECT_FAULT("role 'stage0': lane 'load', instruction 0: a load needs a "
               "micro-batch and no target",
               p.roles[0].lanes[0].instrs[0].microBatch = -1);
  EXPECT_FAULT("role 'stage0': lane 'load', instruction 1: no micro-batch 4",
               p.roles[0].lanes[0].instrs[1].microBatch = 4);
  EXPECT_FAULT("role 'stage0': lane 'compute', instruction 0: no procedure 3",
               p.roles[0].lanes[1].instrs[0].target = 3);
  EXPECT_FAULT("role 'stage0': lane 'compute', instruction 0: bad range of "
               "waits",
               p.roles[0].lanes[1].instrs[0].waitEnd = 10000);
  EXPECT_FAULT("role 'stage0': lane 'compute', instruction 0: waits for 99 "
               "instructions of lane 'load', which has 4",
               p.roles[0].lanes[1].waits[0].count = 99);
  EXPECT_FAULT("role 'stage0': lane 'compute', instruction 0: waits for itself "
               "or what comes after it",
               p.roles[0].lanes[1].waits[0] = (Wait{1, 1}));
  EXPECT_FAULT("role 'stage0': lane 'load', instruction 0: this role is not "
               "the destination of channel 'act0'",
               (p.roles[0].lanes[0].instrs[0] = {InstrKind::Recv, 0, 0, 0, 0}));
  EXPECT_FAULT("role 'stage0': lane 'send_act', instruction 0: this channel is "
               "also used from lane 'load'",
               (p.roles[0].lanes[0].instrs[0] = {InstrKind::Send, 0, 0, 0, 0}));
}

TEST(CheckStructure, TimesThatCannotBeCounted) {
  EXPECT_NE(faultAfter([](Plan &p) {
              p.roles[0].procedures[0].cost = kHuge;
            }).find("more than can be counted"),
            std::string::npos);
  EXPECT_NE(faultAfter([](Plan &p) {
              p.channels[0].link.bytesPerSecond = 1e-300;
            }).find("more than can be counted"),
            std::string::npos);
}

TEST(OperandBytes, CoversEveryKernelKind) {
  // Dims of 1, as flags are too; a head that is turned has pairs.
  for (size_t i = 0; i < namesOf<KernelKind>().size; ++i) {
    Kernel kernel;
    kernel.kind = static_cast<KernelKind>(i);
    bool found = false;
    for (bool pairs : {false, true})
      for (size_t dims = 0; dims <= 5 && !found; ++dims)
        for (size_t scalars = 0; scalars <= 4 && !found; ++scalars)
          for (size_t operands = 0; operands <= 6 && !found; ++operands) {
            kernel.dims.assign(dims, 1);
            for (size_t d = 3; pairs && d < dims; ++d)
              kernel.dims[d] = 2;
            kernel.scalars.assign(scalars, 0.5);
            kernel.operands.assign(operands, BufferRef());
            try {
              EXPECT_EQ(operandBytes(kernel).size(), operands);
              found = true;
            } catch (const Error &) {
            }
          }
    EXPECT_TRUE(found) << nameOf(kernel.kind);
  }
}

TEST(OperandBytes, AttentionAndLoss) {
  Kernel kernel{KernelKind::AttentionInputGrad, Phase::InputGrad, 0,
                std::vector<BufferRef>(6),      {2, 3, 5, 7},     {}};
  EXPECT_EQ(operandBytes(kernel),
            (std::vector<Bytes>{4 * 2 * 3 * 105, 4 * 2 * 3 * 35, 4 * 2 * 5 * 3,
                                4 * 2 * 3 * 35, 4 * 2 * 3 * 105, 4 * 2 * 9}));
  kernel = {KernelKind::CrossEntropyForward, Phase::Forward, 0,
            std::vector<BufferRef>(4),       {6, 10},        {0.5}};
  EXPECT_EQ(operandBytes(kernel), (std::vector<Bytes>{240, 24, 24, 4}));
}

/// Damages one random number of the plan.
static void damage(Plan &plan, std::mt19937_64 &random) {
  static constexpr int64_t kValues[] = {-1,    0,     1,          63,
                                        65535, kHuge, kHuge / 64, -kHuge};
  int64_t value = random() % 2 ? kValues[random() % 8] : int64_t(random());
  Role &role = plan.roles[random() % plan.roles.size()];
  Pool &pool = role.pools[random() % role.pools.size()];
  Procedure &procedure = role.procedures[random() % role.procedures.size()];
  Kernel &kernel = procedure.kernels[random() % procedure.kernels.size()];
  Lane &lane = role.lanes[random() % role.lanes.size()];
  Instr &instr = lane.instrs[random() % lane.instrs.size()];
  Channel &channel = plan.channels[random() % plan.channels.size()];
  Endpoint &end = role.channels[random() % role.channels.size()];
  switch (random() % 24) {
  case 0:
    plan.training.globalBatch = value;
    break;
  case 1:
    plan.training.microBatches = int32_t(value);
    break;
  case 2:
    pool.base = value;
    break;
  case 3:
    pool.slotBytes = value;
    break;
  case 4:
    pool.count = int32_t(value);
    break;
  case 5:
    role.firstRank = int32_t(value);
    break;
  case 6:
    role.replicas = int32_t(value);
    break;
  case 7:
    role.arenaBytes = value;
    break;
  case 8:
    procedure.cost = value;
    break;
  case 9:
    procedure.stage = int32_t(value);
    break;
  case 10:
    kernel.kind = KernelKind(value);
    break;
  case 11:
    kernel.dims[random() % kernel.dims.size()] = value;
    break;
  case 12:
    kernel.operands[0].pool = uint16_t(value);
    break;
  case 13:
    kernel.operands[0].offset = value;
    break;
  case 14:
    kernel.operands[0].bytes = value;
    break;
  case 15:
    instr.kind = InstrKind(value);
    break;
  case 16:
    instr.target = uint16_t(value);
    break;
  case 17:
    instr.microBatch = int32_t(value);
    break;
  case 18:
    instr.waitBegin = uint32_t(value);
    break;
  case 19:
    instr.waitEnd = uint32_t(value);
    break;
  case 20:
    channel.bytes = value;
    break;
  case 21:
    channel.srcRole = uint16_t(value % 3);
    break;
  case 22:
    end.target = uint16_t(value);
    break;
  default:
    plan.params[0].shape[0] = value;
    break;
  }
}

TEST(CheckStructure, RandomDamageNeverCrashes) {
  PipelineShape shape;
  shape.stages = 3;
  shape.replicas = {1, 2, 1};
  const Plan sound = makePipeline(shape);
  std::mt19937_64 random(7);
  size_t faulty = 0;
  for (int i = 0; i < 4000; ++i) {
    Plan plan = sound;
    for (int k = 0; k <= i % 3; ++k)
      damage(plan, random);
    if (!checkStructure(plan).empty()) {
      ++faulty;
      continue;
    }
    // What passes may hang, but only by saying so.
    try {
      simulate(plan);
    } catch (const Error &) {
    }
  }
  EXPECT_GT(faulty, 2000u);
}
