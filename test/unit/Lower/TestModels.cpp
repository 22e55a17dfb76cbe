//===- TestModels.cpp - small models built by hand ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// See TestModels.h.
//
//===----------------------------------------------------------------------===//
#include "TestModels.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <random>
#include <set>

using namespace takt;

namespace {

/// Adds layers one after another and infers their shapes.
class Writer {
public:
  Graph graph;

  int32_t input(std::string name, DType dtype, std::vector<int64_t> shape) {
    int32_t index = int32_t(graph.inputs.size());
    graph.inputs.push_back({name, dtype, shape, 0});
    graph.values.push_back({name, {shape, dtype}, -1, index});
    return int32_t(graph.values.size()) - 1;
  }

  int32_t param(std::string name, std::vector<int64_t> shape,
                bool trainable = true) {
    graph.params.push_back({std::move(name), std::move(shape),
                            rt::InitKind::Normal, 0.02, trainable});
    return int32_t(graph.params.size()) - 1;
  }

  int32_t add(LayerKind kind, std::string name, std::vector<int32_t> inputs,
              std::vector<int32_t> params = {}, int64_t heads = 0,
              int64_t kvHeads = 0) {
    Layer layer;
    layer.kind = kind;
    layer.name = name;
    layer.inputs = inputs;
    layer.params = params;
    layer.heads = heads;
    layer.kvHeads = kvHeads;
    layer.hasBias = kind == LayerKind::Linear && params.size() == 2;
    return append(std::move(layer));
  }

  int32_t addRotary(std::string name, int32_t x, int64_t heads,
                    int64_t headDim) {
    Layer layer;
    layer.kind = LayerKind::Rotary;
    layer.name = std::move(name);
    layer.inputs = {x};
    layer.heads = heads;
    layer.headDim = headDim;
    return append(std::move(layer));
  }

  int32_t append(Layer layer) {
    std::vector<TensorType> types;
    for (int32_t id : layer.inputs)
      types.push_back(graph.values[id].type);
    InferredType type = inferOutput(layer, types, graph.params);
    assert(type.error.empty());
    layer.output = int32_t(graph.values.size());
    graph.values.push_back(
        {layer.name, type.type, int32_t(graph.layers.size()), -1});
    graph.layers.push_back(layer);
    return layer.output;
  }

  int32_t linear(std::string name, int32_t x, int64_t out) {
    int64_t in = graph.values[x].type.shape.back();
    int32_t w = param(name + ".weight", {out, in});
    int32_t b = param(name + ".bias", {out});
    return add(LayerKind::Linear, name, {x}, {w, b});
  }

  int32_t norm(std::string name, int32_t x) {
    int64_t width = graph.values[x].type.shape.back();
    int32_t g = param(name + ".weight", {width});
    int32_t b = param(name + ".bias", {width});
    return add(LayerKind::LayerNorm, name, {x}, {g, b});
  }
};

} // namespace

Graph takt::test::makeGpt(const GptShape &shape) {
  Writer w;
  w.graph.name = "gpt";
  int32_t tokens = w.input("tokens", DType::Int32, {shape.positions});
  int32_t targets = w.input("targets", DType::Int32, {shape.positions});
  bool train = !shape.frozenPrefix;
  int32_t table = w.param("tok.weight", {shape.vocab, shape.width}, train);
  int32_t x = w.add(LayerKind::Embedding, "tok", {tokens}, {table});
  int32_t pos = w.param("pos.weight", {shape.positions, shape.width}, train);
  x = w.add(LayerKind::PositionalEmbedding, "pos", {x}, {pos});
  for (int i = 0; i < shape.blocks; ++i) {
    std::string p = "h." + std::to_string(i) + ".";
    int32_t y = w.norm(p + "ln1", x);
    y = w.linear(p + "attn.qkv", y, 3 * shape.width);
    y = w.add(LayerKind::Attention, p + "attn.core", {y}, {}, shape.heads);
    y = w.linear(p + "attn.proj", y, shape.width);
    x = w.add(LayerKind::Add, p + "add1", {x, y});
    y = w.norm(p + "ln2", x);
    y = w.linear(p + "fc", y, 4 * shape.width);
    y = w.add(LayerKind::Gelu, p + "act", {y});
    y = w.linear(p + "proj", y, shape.width);
    x = w.add(LayerKind::Add, p + "add2", {x, y});
  }
  x = w.norm("lnf", x);
  int32_t head = shape.tied && train
                     ? table
                     : w.param("head.weight", {shape.vocab, shape.width});
  x = w.add(LayerKind::Linear, "head", {x}, {head});
  w.add(LayerKind::CrossEntropy, "loss", {x, targets});
  return w.graph;
}

Graph takt::test::makeLlama(int blocks, int64_t width, int64_t positions) {
  Writer w;
  w.graph.name = "llama";
  const int64_t vocab = 32, headDim = width / 4;
  int32_t tokens = w.input("tokens", DType::Int32, {positions});
  int32_t targets = w.input("targets", DType::Int32, {positions});
  int32_t table = w.param("tok.weight", {vocab, width});
  int32_t x = w.add(LayerKind::Embedding, "tok", {tokens}, {table});
  auto norm = [&](const std::string &name, int32_t from) {
    int32_t gain = w.param(name + ".weight", {width});
    return w.add(LayerKind::RmsNorm, name, {from}, {gain});
  };
  auto product = [&](const std::string &name, int32_t from, int64_t out) {
    int64_t in = w.graph.values[from].type.shape.back();
    int32_t weight = w.param(name + ".weight", {out, in});
    return w.add(LayerKind::Linear, name, {from}, {weight});
  };
  for (int i = 0; i < blocks; ++i) {
    std::string p = "h." + std::to_string(i) + ".";
    int32_t y = product(p + "attn.qkv", norm(p + "n1", x), 8 * headDim);
    y = w.addRotary(p + "attn.rotary", y, 6, headDim);
    y = w.add(LayerKind::Attention, p + "attn.core", {y}, {}, 4, 2);
    y = product(p + "attn.proj", y, width);
    x = w.add(LayerKind::Add, p + "add1", {x, y});
    y = product(p + "mlp.in", norm(p + "n2", x), 6 * width);
    y = w.add(LayerKind::Glu, p + "mlp.gate", {y});
    y = product(p + "mlp.out", y, width);
    x = w.add(LayerKind::Add, p + "add2", {x, y});
  }
  x = w.add(LayerKind::Linear, "head", {norm("n", x)}, {table});
  w.add(LayerKind::CrossEntropy, "loss", {x, targets});
  return w.graph;
}

Graph takt::test::makeMlp(int layers, int64_t width, bool shared) {
  Writer w;
  w.graph.name = "mlp";
  int32_t x = w.input("x", DType::Float32, {width});
  int32_t target = w.input("target", DType::Float32, {width});
  for (int i = 0; i < layers; ++i) {
    std::string n = std::to_string(i);
    x = shared && i > 0 ? w.add(LayerKind::Linear, "fc" + n, {x}, {0, 1})
                        : w.linear("fc" + n, x, width);
    x = w.add(LayerKind::Relu, "act" + n, {x});
  }
  w.add(LayerKind::MeanSquaredError, "loss", {x, target});
  return w.graph;
}

Graph takt::test::makeSkips(uint64_t seed, int layers, int64_t width) {
  std::mt19937_64 random(seed);
  auto pick = [&](size_t n) { return size_t(random() % n); };
  Writer w;
  w.graph.name = "skips";
  int32_t target = w.input("target", DType::Float32, {width});
  std::vector<int32_t> values{
      w.linear("in", w.input("x", DType::Float32, {width}), width)};
  std::set<int32_t> unread(values.begin(), values.end());
  // Mostly what nothing reads yet, so that paths grow long.
  auto take = [&] {
    int32_t value = !unread.empty() && pick(3) > 0
                        ? *std::next(unread.begin(), pick(unread.size()))
                        : values[pick(values.size())];
    unread.erase(value);
    return value;
  };
  auto sum = [&](const std::string &name, int32_t a, int32_t b) {
    return w.add(LayerKind::Add, name, {a, b});
  };
  for (int i = 0; i < layers; ++i) {
    std::string n = std::to_string(i);
    int32_t x = take(), y = -1;
    switch (pick(5)) {
    case 0:
    case 1:
      y = w.linear("fc" + n, x, width);
      break;
    case 2:
      y = w.norm("ln" + n, x);
      break;
    case 3:
      y = w.add(LayerKind::Gelu, "act" + n, {x});
      break;
    default:
      y = sum("add" + n, x, take());
    }
    values.push_back(y);
    unread.insert(y);
  }
  int32_t x = *unread.begin();
  unread.erase(x);
  for (int32_t other : unread)
    x = sum("join" + std::to_string(other), x, other);
  w.add(LayerKind::MeanSquaredError, "loss",
        {w.linear("out", x, width), target});
  return w.graph;
}

LoweringProblem takt::test::makeProblem(Graph graph, std::vector<int64_t> cuts,
                                        int32_t microBatches,
                                        const std::vector<int32_t> &replicas,
                                        const std::string &schedule,
                                        int64_t microBatchSize) {
  std::vector<Segment> segments = chainSegments(graph);
  std::vector<int32_t> layers;
  for (int64_t cut : cuts)
    layers.push_back(segments[cut].begin);
  return cutBefore(std::move(graph), std::move(layers), microBatches, replicas,
                   schedule, microBatchSize);
}

LoweringProblem takt::test::cutBefore(Graph graph, std::vector<int32_t> cuts,
                                      int32_t microBatches,
                                      const std::vector<int32_t> &replicas,
                                      const std::string &schedule,
                                      int64_t microBatchSize) {
  LoweringProblem problem;
  problem.cluster = "test";
  problem.schedule = schedule;
  problem.costSource = "unit";
  problem.graph = std::move(graph);
  problem.training.globalBatch = microBatchSize * microBatches;
  problem.training.microBatches = microBatches;
  problem.training.optimizer = rt::OptimizerKind::AdamW;
  cuts.push_back(int32_t(problem.graph.layers.size()));
  int32_t begin = 0, device = 0;
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (size_t s = 0; s < cuts.size(); ++s) {
    StageInput stage;
    stage.layerBegin = begin;
    stage.layerEnd = begin = cuts[s];
    RoleInput role;
    role.stages = {int32_t(s)};
    role.replicas = replicas[s];
    for (int32_t r = 0; r < role.replicas; ++r)
      role.devices.push_back(device++);
    problem.roles.push_back(std::move(role));
    stage.times.resize(stage.layerEnd - stage.layerBegin);
    stage.times[0] = {1000, 1000, 1000, 0};
    ranges.push_back({stage.layerBegin, stage.layerEnd});
    problem.stages.push_back(std::move(stage));
  }
  problem.boundaryLinks.resize(cuts.size() - 1);
  problem.ties = findTies(problem.graph, ranges);
  problem.tieLinks.resize(problem.ties.size());
  ScheduleProblem shape{int32_t(cuts.size()), microBatches};
  insertCommunication(problem, *generateSchedule(schedule, shape));
  return problem;
}

LoweringProblem takt::test::placeStages(LoweringProblem problem,
                                        const Schedule &schedule) {
  const std::vector<RoleInput> before = std::move(problem.roles);
  problem.roles.clear();
  problem.schedule = schedule.name;
  int32_t device = 0;
  for (const std::vector<Action> &actions : schedule.roles) {
    std::set<int32_t> stages;
    for (const Action &action : actions)
      stages.insert(action.stage);
    RoleInput role;
    role.stages.assign(stages.begin(), stages.end());
    role.replicas = before[*stages.begin()].replicas;
    role.groupLink = before[*stages.begin()].groupLink;
    for (int32_t r = 0; r < role.replicas; ++r)
      role.devices.push_back(device++);
    problem.roles.push_back(std::move(role));
  }
  insertCommunication(problem, schedule);
  return problem;
}

Schedule takt::test::interleaved(int32_t ranks, int32_t chunks,
                                 int32_t microBatches, bool split) {
  Schedule schedule{"interleaved", {}};
  int32_t total = microBatches * chunks, round = ranks * chunks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Action> actions;
    auto add = [&](int32_t turn, bool forward) {
      int32_t chunk = turn % round / ranks;
      int32_t microBatch = turn / round * ranks + turn % ranks;
      int32_t stage = (forward ? chunk : chunks - 1 - chunk) * ranks + rank;
      if (forward)
        return actions.push_back({stage, ActionKind::F, microBatch});
      actions.push_back(
          {stage, split ? ActionKind::I : ActionKind::B, microBatch});
      if (split)
        actions.push_back({stage, ActionKind::W, microBatch});
    };
    int32_t ahead = (ranks - rank - 1) * 2 + (chunks - 1) * ranks;
    ahead = std::min(ahead, total);
    for (int32_t turn = 0; turn < ahead; ++turn)
      add(turn, true);
    for (int32_t turn = ahead; turn < total; ++turn) {
      add(turn, true);
      add(turn - ahead, false);
    }
    for (int32_t turn = total - ahead; turn < total; ++turn)
      add(turn, false);
    schedule.roles.push_back(std::move(actions));
  }
  return schedule;
}

Schedule takt::test::vShaped(int32_t ranks, int32_t microBatches, bool split) {
  Schedule schedule{"v", std::vector<std::vector<Action>>(ranks)};
  const int32_t stages = 2 * ranks;
  // Micro-batches done, and those of the turns before.
  std::vector<int32_t> forward(stages), backward(stages), weight(stages);
  const ActionKind back = split ? ActionKind::I : ActionKind::B;
  for (bool moved = true; moved;) {
    moved = false;
    const std::vector<int32_t> f = forward, b = backward;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      std::vector<Action> &own = schedule.roles[rank];
      auto run = [&](int32_t s, ActionKind kind, int32_t &count) {
        own.push_back({s, kind, count++});
        moved = true;
      };
      auto mayForward = [&](int32_t s) {
        const int32_t most = std::min(microBatches, backward[s] + stages - s);
        return forward[s] < most && (s == 0 || f[s - 1] > forward[s]);
      };
      auto mayBackward = [&](int32_t s) {
        return f[s] > backward[s] &&
               (s + 1 == stages || b[s + 1] > backward[s]);
      };
      const int32_t low = rank, high = stages - 1 - rank;
      if (mayBackward(low))
        run(low, back, backward[low]);
      else if (mayBackward(high))
        run(high, back, backward[high]);
      else if (mayForward(high))
        run(high, ActionKind::F, forward[high]);
      else if (mayForward(low))
        run(low, ActionKind::F, forward[low]);
      else if (split && weight[high] < backward[high])
        run(high, ActionKind::W, weight[high]);
      else if (split && weight[low] < backward[low])
        run(low, ActionKind::W, weight[low]);
    }
  }
  return schedule;
}
