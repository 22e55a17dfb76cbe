//===- PipeBridgeTest.cpp - pipe and coll IR to and from structs ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What crosses the bridges arrives on the other side, and what is missing in IR
// is named.
//
//===----------------------------------------------------------------------===//
#include "Coll/CollBridge.h"
#include "Pipe/PipePools.h"
#include "takt-rt/core/plan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

const char *const kModel = R"(
model.graph @net(%x: tensor<8xf32> <"x">, %y: tensor<i32> <"y", classes = 8>)
    training <global_batch = 8, micro_batches = 2> data synthetic
    replica_options [1, 2, 4] cost_source "roofline" {
  model.param @w : tensor<8x8xf32> init <normal, 0.02>
  model.param @v : tensor<8x8xf32> init <normal, 0.02>
  %a = model.linear "a" %x weight @w : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [8, 4, 2], input_grad = [0, 0, 0],
          weight_grad = [6, 3, 2], update = 5>
  %b = model.linear "b" %a weight @v : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [9, 5, 3], input_grad = [7, 4, 2],
          weight_grad = [6, 3, 2], update = 5>
  %c = model.linear "c" %b weight @w : tensor<8xf32> -> tensor<8xf32>
    cost <forward = [10, 6, 4], input_grad = [7, 4, 2],
          weight_grad = [6, 3, 2], update = 5>
  %loss = model.cross_entropy "loss" %c, %y : tensor<8xf32>, tensor<i32>
    cost <forward = [1, 1, 1], input_grad = [1, 1, 1],
          weight_grad = [0, 0, 0]>
  model.output %loss : tensor<f32>
}
pipe.cluster @two network "ib" {
  #pipe.device<"cpu", flops = 1000, memory_bandwidth = 1000, memory = 65536>
  #pipe.link<"shm", latency = 1000, bandwidth = 5000000000>
  #pipe.link<"ib", latency = 9000, bandwidth = 1000000000>
  #pipe.nodes<count = 2, device = "cpu", devices = 3, link = "shm">
}
)";

const char *const kProgram = R"(
pipe.program @job of @net on @two schedule "1f1b"
    objective_ns 700 bound_ns 600 method "exact" {
  pipe.stage 0 layers [0, 1) "a" to "a" segments [0, 1)
    replicas 2 devices [0, 1] memory_bytes 4096 in_flight 2
    forward_ns 4 backward_ns 3 transfer_ns 20 all_reduce_ns 30
  pipe.stage 1 layers [1, 4) "b" to "loss" segments [1, 4)
    replicas 1 devices [3] memory_bytes 2048 in_flight 1
    forward_ns 20 backward_ns 27 transfer_ns 0 all_reduce_ns 10
)";

const char *const kRoles = R"(
  pipe.role 0 stages [0] actions <"0F0 0F1 0B0 0B1">
  pipe.role 1 stages [1] actions <"1F0 1B0 1F1 1B1">
)";

class PipeBridge : public testing::Test {
protected:
  PipeBridge() {
    context.loadDialect<model::ModelDialect, pipe::PipeDialect,
                        coll::CollDialect>();
    context.getDiagEngine().registerHandler(
        [&](mlir::Diagnostic &diag) { diagnostics += diag.str() + "\n"; });
  }

  /// Parses and verifies.
  void parse(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << diagnostics;
  }

  pipe::ClusterOp cluster() {
    return *module->getOps<pipe::ClusterOp>().begin();
  }

  /// The communication level: inserted into roles, then read back.
  void insert() {
    parse(std::string(kModel) + kProgram + kRoles + "}\n");
    auto parts = pipe::findProgram(*module, error);
    ASSERT_TRUE(parts) << error;
    auto problem = coll::exportStages(*parts, error);
    ASSERT_TRUE(problem) << error;
    problem->ties = findTies(problem->graph, {{0, 1}, {1, 4}});
    insertCommunication(*problem, pipe::exportSchedule(parts->program));
    coll::importCommunication(*problem, *parts);
    inserted = std::move(*problem);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module))) << diagnostics;
  }

  /// The first op of a kind in the program.
  template <typename OpTy>
  OpTy first() {
    pipe::ProgramOp program = *module->getOps<pipe::ProgramOp>().begin();
    return *program.getBody().getOps<OpTy>().begin();
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  LoweringProblem inserted;
  std::string diagnostics, error;
};

TEST_F(PipeBridge, ClusterKeepsEveryField) {
  ClusterSpec spec;
  spec.file = "two.yaml";
  spec.name = "two";
  spec.devices = {{"a", 0.1, 1e300, 5, 6, 3, 150000, 2500000, {}},
                  {"b", 2, 3, 0, 0, 0, 0, 0, {}}};
  spec.links = {{"l", 7, 0, {}}, {"m", 8, 2.5, {}}};
  spec.nodes = {{2, "a", 4, 16, 99, "l", 2, 0.5, {}},
                {1, "b", 1, 0, 0, "", 0, 0, {}}};
  spec.network = "m";

  module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  mlir::OpBuilder builder(&context);
  builder.setInsertionPointToEnd(module->getBody());
  pipe::importCluster(spec, builder);
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module))) << diagnostics;
  ClusterSpec back = pipe::exportCluster(cluster());

  EXPECT_EQ(back.file, spec.file);
  EXPECT_EQ(back.name, spec.name);
  EXPECT_EQ(back.network, spec.network);
  ASSERT_EQ(back.devices.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.devices[i].name, spec.devices[i].name);
    EXPECT_EQ(back.devices[i].flops, spec.devices[i].flops);
    EXPECT_EQ(back.devices[i].memoryBandwidth, spec.devices[i].memoryBandwidth);
    EXPECT_EQ(back.devices[i].memory, spec.devices[i].memory);
    EXPECT_EQ(back.devices[i].kernelOverhead, spec.devices[i].kernelOverhead);
    EXPECT_EQ(back.devices[i].copyEngines, spec.devices[i].copyEngines);
    EXPECT_EQ(back.devices[i].transferSharePpm,
              spec.devices[i].transferSharePpm);
    EXPECT_EQ(back.devices[i].price, spec.devices[i].price);
  }
  ASSERT_EQ(back.links.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.links[i].name, spec.links[i].name);
    EXPECT_EQ(back.links[i].latency, spec.links[i].latency);
    EXPECT_EQ(back.links[i].bandwidth, spec.links[i].bandwidth);
  }
  ASSERT_EQ(back.nodes.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.nodes[i].count, spec.nodes[i].count);
    EXPECT_EQ(back.nodes[i].device, spec.nodes[i].device);
    EXPECT_EQ(back.nodes[i].devices, spec.nodes[i].devices);
    EXPECT_EQ(back.nodes[i].cores, spec.nodes[i].cores);
    EXPECT_EQ(back.nodes[i].hostMemory, spec.nodes[i].hostMemory);
    EXPECT_EQ(back.nodes[i].link, spec.nodes[i].link);
    EXPECT_EQ(back.nodes[i].networkPorts, spec.nodes[i].networkPorts);
    EXPECT_EQ(back.nodes[i].networkPortBandwidth,
              spec.nodes[i].networkPortBandwidth);
  }
}

TEST_F(PipeBridge, ResourcesFollowFromKindsAndLinks) {
  parse(R"(pipe.cluster @c network "ib" {
    #pipe.device<"d", flops = 1, memory_bandwidth = 7, copy_engines = 3,
                 transfer_share_ppm = 150000>
    #pipe.device<"e", flops = 1, memory_bandwidth = 8>
    #pipe.link<"l", latency = 3, bandwidth = 4>
    #pipe.link<"ib", latency = 5, bandwidth = 6>
    #pipe.nodes<count = 2, device = "d", devices = 8, link = "l", cores = 16,
                network_ports = 4, network_port_bandwidth = 9>
    #pipe.nodes<count = 3, device = "e">
  })");
  std::vector<rt::NodeResources> resources = pipe::exportResources(cluster());
  ASSERT_EQ(resources.size(), 2u);
  EXPECT_EQ(resources[0].nodes, 2);
  EXPECT_EQ(resources[0].devices, 8);
  EXPECT_EQ(resources[0].cores, 16);
  EXPECT_EQ(resources[0].copyEngines, 3);
  EXPECT_EQ(resources[0].transferShare, 0.15);
  EXPECT_EQ(resources[0].memoryBytesPerSecond, 7);
  EXPECT_EQ(resources[0].portBytesPerSecond, 4);
  EXPECT_EQ(resources[0].networkBytesPerSecond, 9);
  EXPECT_EQ(resources[0].networkPorts, 4);
  // What is not stated is not shared; the network's rate is every port's.
  EXPECT_EQ(resources[1].nodes, 3);
  EXPECT_EQ(resources[1].cores, 0);
  EXPECT_EQ(resources[1].copyEngines, 0);
  EXPECT_EQ(resources[1].transferShare, 0);
  EXPECT_EQ(resources[1].memoryBytesPerSecond, 8);
  EXPECT_EQ(resources[1].portBytesPerSecond, 0);
  EXPECT_EQ(resources[1].networkBytesPerSecond, 6);
  EXPECT_EQ(resources[1].networkPorts, 0);
}

TEST_F(PipeBridge, EqualNodesOfSeveralGroupsAreOnePartitionCluster) {
  parse(R"(pipe.cluster @c network "ib" {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1, memory = 77>
    #pipe.link<"l", latency = 3, bandwidth = 4>
    #pipe.link<"ib", latency = 5, bandwidth = 6>
    #pipe.nodes<count = 2, device = "d", devices = 8, link = "l">
    #pipe.nodes<count = 3, device = "d", devices = 8, link = "l">
  })");
  auto result = pipe::exportPartitionCluster(cluster(), error);
  ASSERT_TRUE(result) << error;
  EXPECT_EQ(result->devices, 40);
  EXPECT_EQ(result->devicesPerNode, 8);
  EXPECT_EQ(result->memory, 77);
  EXPECT_EQ(result->intraNode.name, "l");
  EXPECT_EQ(result->network.latency, 5);
  EXPECT_EQ(result->network.bytesPerSecond, 6);
}

TEST_F(PipeBridge, LikeNodesAreOnePool) {
  parse(R"(pipe.cluster @c network "ib" {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1, memory = 77, price = 9>
    #pipe.device<"e", flops = 1, memory_bandwidth = 1, memory = 5>
    #pipe.link<"l", latency = 3, bandwidth = 4>
    #pipe.link<"ib", latency = 5, bandwidth = 6>
    #pipe.nodes<count = 2, device = "d", devices = 2, link = "l">
    #pipe.nodes<device = "e">
    #pipe.nodes<device = "d", devices = 2, link = "l">
    #pipe.nodes<device = "d", devices = 2, link = "ib">
  })");
  EXPECT_FALSE(pipe::exportPartitionCluster(cluster(), error));
  const pipe::ClusterPools pools = pipe::exportPools(cluster());
  EXPECT_EQ(pools.network.latency, 5);
  ASSERT_EQ(pools.pools.size(), 3u);
  EXPECT_EQ(pools.pools[0].kind, "d");
  EXPECT_EQ(pools.pools[0].devices, 6);
  EXPECT_EQ(pools.pools[0].devicesPerNode, 2);
  EXPECT_EQ(pools.pools[0].memory, 77);
  EXPECT_EQ(pools.pools[0].price, 9);
  EXPECT_EQ(pools.pools[0].intraNode.name, "l");
  EXPECT_EQ(pools.devices[0], (std::vector<int32_t>{0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(pools.pools[1].kind, "e");
  EXPECT_EQ(pools.devices[1], (std::vector<int32_t>{4}));
  EXPECT_EQ(pools.pools[2].intraNode.name, "ib");
  EXPECT_EQ(pools.devices[2], (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(pipe::usedKinds(cluster()), (std::vector<std::string>{"d", "e"}));
  EXPECT_EQ(pipe::exportResources(cluster())[0].kind, "d");
  EXPECT_EQ(pipe::exportResources(cluster())[0].price, 9);
}

TEST_F(PipeBridge, DevicesAreNumberedNodeByNode) {
  parse(R"(pipe.cluster @c network "ib" {
    #pipe.device<"d", flops = 1, memory_bandwidth = 1>
    #pipe.link<"l", latency = 3, bandwidth = 4>
    #pipe.link<"m", latency = 3, bandwidth = 4>
    #pipe.link<"ib", latency = 5, bandwidth = 6>
    #pipe.nodes<count = 2, device = "d", devices = 3, link = "l">
    #pipe.nodes<count = 1, device = "d", devices = 2, link = "m">
    #pipe.nodes<count = 1, device = "d">
  })");
  EXPECT_EQ(cluster().getNumDevices(), 9);
  const int64_t nodes[] = {0, 0, 0, 1, 1, 1, 2, 2, 3};
  for (int32_t device = 0; device < 9; ++device)
    EXPECT_EQ(cluster().getNodeOf(device).first, nodes[device]) << device;
  EXPECT_EQ(cluster().getNodeOf(9).first, -1);
  auto linkAmong = [&](std::vector<int32_t> devices) {
    pipe::LinkAttr link = cluster().getLinkAmong(devices);
    return link ? link.getName().str() : "none";
  };
  EXPECT_EQ(linkAmong({0, 1, 2}), "l");
  EXPECT_EQ(linkAmong({3, 5}), "l");
  EXPECT_EQ(linkAmong({2, 3}), "ib");
  EXPECT_EQ(linkAmong({6, 7}), "m");
  EXPECT_EQ(linkAmong({6, 7, 8}), "ib");
  EXPECT_EQ(linkAmong({8}), "none");
}

TEST_F(PipeBridge, PartitionComesBackFromStages) {
  parse(std::string(kModel) + kProgram + "}\n");
  auto parts = pipe::findProgram(*module, error);
  ASSERT_TRUE(parts) << error;
  Partition partition = pipe::exportPartition(parts->program, {1, 2, 4});
  EXPECT_EQ(partition.objective, 700);
  EXPECT_EQ(partition.bound, 600);
  EXPECT_EQ(partition.method, "exact");
  ASSERT_EQ(partition.stages.size(), 2u);
  EXPECT_EQ(partition.stages[0].begin, 0);
  EXPECT_EQ(partition.stages[0].end, 1);
  EXPECT_EQ(partition.stages[0].option, 1);
  EXPECT_EQ(partition.stages[0].time, 7);
  EXPECT_EQ(partition.stages[0].transfer, 20);
  EXPECT_EQ(partition.stages[0].allReduce, 30);
  EXPECT_EQ(partition.stages[0].memory, 4096);
  EXPECT_EQ(partition.stages[0].inFlight, 2);
  EXPECT_EQ(partition.stages[1].option, 0);
  EXPECT_EQ(partition.stages[1].firstDevice, 3);
  EXPECT_EQ(pipe::exportPartition(parts->program, {1}).stages[0].option, -1);
}

TEST_F(PipeBridge, LoweringReadsBackWhatWasInserted) {
  insert();
  auto problem = coll::exportLowering(*module, error);
  ASSERT_TRUE(problem) << error;
  EXPECT_EQ(problem->cluster, "two");
  EXPECT_EQ(problem->schedule, "1f1b");
  EXPECT_EQ(problem->costSource, "roofline");
  EXPECT_EQ(problem->training.microBatches, 2);
  ASSERT_EQ(problem->stages.size(), 2u);
  const StageInput &stage = problem->stages[0];
  EXPECT_EQ(stage.layerEnd, 1);
  ASSERT_EQ(problem->roles.size(), 2u);
  const RoleInput &role = problem->roles[0];
  EXPECT_EQ(role.stages, (std::vector<int32_t>{0}));
  EXPECT_EQ(role.devices, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(role.capacity, 65536);
  EXPECT_EQ(role.groupLink.name, "shm");
  // Times of the second replica option.
  ASSERT_EQ(stage.times.size(), 1u);
  EXPECT_EQ(stage.times[0].forward, 4);
  EXPECT_EQ(stage.times[0].weightGrad, 3);
  EXPECT_EQ(stage.times[0].update, 5);
  EXPECT_EQ(problem->stages[1].times[0].forward, 9);
  ASSERT_EQ(problem->boundaryLinks.size(), 1u);
  EXPECT_EQ(problem->boundaryLinks[0].name, "ib");
  ASSERT_EQ(problem->ties.size(), 1u);
  EXPECT_EQ(problem->graph.params[problem->ties[0].param].name, "w");
  EXPECT_EQ(problem->tieLinks[0].latency, 9000);
  for (size_t s = 0; s < 2; ++s) {
    ASSERT_EQ(problem->roles[s].lanes.size(), inserted.roles[s].lanes.size());
    for (size_t l = 0; l < inserted.roles[s].lanes.size(); ++l) {
      EXPECT_EQ(problem->roles[s].lanes[l].kind,
                inserted.roles[s].lanes[l].kind);
      EXPECT_EQ(problem->roles[s].lanes[l].actions,
                inserted.roles[s].lanes[l].actions);
    }
  }
  EXPECT_EQ(rt::checkStructure(lower(*problem)), std::vector<std::string>());
}

TEST_F(PipeBridge, LoweringNamesWhatIsMissing) {
  parse(kModel);
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "the module has no stages ('pipe.program')");

  parse(std::string(kModel) + kProgram + "}\n");
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "the program has no roles: there is no schedule");

  parse(std::string(kModel) + kProgram + kRoles + "}\n");
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "role 0 has no lanes: communication is not inserted");
}

TEST_F(PipeBridge, LoweringNamesChannelsGroupsAndTiesThatAreMissing) {
  insert();
  first<coll::ChannelOp>().setBytes(1);
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "channel 'act0' carries 1 bytes a micro-batch, the model "
                   "has 128");
  first<coll::ChannelOp>().erase();
  first<coll::ChannelOp>().erase();
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "stages 0 and 1 have no channel between them");

  insert();
  first<coll::GroupOp>().erase();
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "stage 0 reduces gradients but has no group");

  insert();
  first<coll::TieOp>().setParam("u");
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "tie 'tie0' is of 'u', which is no parameter of the model");
  first<coll::TieOp>().erase();
  EXPECT_FALSE(coll::exportLowering(*module, error));
  EXPECT_EQ(error, "the ties are not those of the graph and its cuts");
}

} // namespace
