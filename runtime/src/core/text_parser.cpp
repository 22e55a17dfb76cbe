//===- text_parser.cpp - text to plan ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads what text_writer.cpp writes. Statements may stand in any order as long
// as a name is declared before it is used, except roles in channels and groups
// and lanes in waits, which are looked up once all are known.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/error.h"
#include "takt-rt/core/names.h"
#include "takt-rt/core/text.h"

#include "check.h"
#include "text_scanner.h"

#include <fmt/format.h>

#include <map>

namespace takt::rt {

namespace {

constexpr std::string_view kMagic = "takt-plan";

/// Positions of names, for lookups in constant time a use.
using NameIndex = std::map<std::string, size_t>;

class Parser {
public:
  Parser(std::string_view text, const std::string &file) : in(text, file) {}
  Plan parse();

private:
  template <typename Enum>
  Enum value(const char *what) {
    size_t at = in.position();
    std::string_view word = in.word(what);
    if (auto known = valueOf<Enum>(word))
      return *known;
    in.failAt(at, fmt::format("unknown {} '{}'", what, word));
  }
  template <typename T, typename One>
  std::vector<T> sequence(std::string_view open, std::string_view close,
                          One one) {
    std::vector<T> items;
    in.expect(open);
    if (in.accept(close))
      return items;
    do
      items.push_back(one());
    while (in.accept(","));
    in.expect(close);
    return items;
  }
  template <typename T>
  std::vector<T> integers() {
    return sequence<T>("[", "]", [&] { return in.integer<T>(); });
  }
  void add(NameIndex &index, const std::string &name, size_t at,
           const char *what) {
    if (!index.emplace(name, index.size()).second)
      in.failAt(at, fmt::format("a second {} '{}'", what, name));
  }
  size_t find(const NameIndex &index, const std::string &name, size_t at,
              const char *what) {
    auto entry = index.find(name);
    if (entry == index.end())
      in.failAt(at, fmt::format("no {} '{}'", what, name));
    return entry->second;
  }
  size_t use(const NameIndex &index, const char *what) {
    size_t at = in.position();
    return find(index, in.name(what), at, what);
  }

  /// A 16-bit field that holds the index of a name declared later.
  struct Later {
    std::string name;
    size_t at;
  };
  Later later(const char *what) {
    size_t at = in.position();
    return {in.name(what), at};
  }

  bool headerStatement();
  void training();
  void modelStatement();
  Link link();
  void channel();
  void group();
  void role();
  bool roleStatement(Role &role);
  void pool(Role &role);
  BufferRef buffer();
  std::vector<BufferRef> bufferList();
  Endpoint endpoint(const NameIndex &index, const char *what);
  void procedure(Role &role);
  void lane(Role &role);
  Instr instr(Lane &lane);
  void resolveWaits(Role &role);
  void resolveRoles();

  TextScanner in;
  Plan plan;
  NameIndex params, channels, groups, roles, pools, lanes;
  std::map<std::pair<int32_t, std::string>, size_t> procedures;
  std::vector<std::pair<Later, Later>> channelEnds;
  std::vector<Later> groupRoles;
  std::vector<std::vector<Later>> waitLanes; ///< of the role being read
};

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

bool Parser::headerStatement() {
  auto text = [&](std::string_view word, std::string &field) {
    if (!in.acceptWord(word))
      return false;
    field = in.name("a string");
    return true;
  };
  auto nanos = [&](std::string_view word, Nanos &field) {
    if (!in.acceptWord(word))
      return false;
    field = in.integer<Nanos>();
    return true;
  };
  if (in.acceptWord("feature")) {
    size_t at = in.position();
    std::string feature = in.name("a string");
    in.failAt(at, fmt::format("needs the feature '{}', which this program does "
                              "not know",
                              feature));
  }
  return text("model", plan.model) || text("cluster", plan.cluster) ||
         text("compiler", plan.compiler) ||
         text("input_hash", plan.inputHash) ||
         text("schedule", plan.schedule) ||
         text("cost_source", plan.costSource) ||
         nanos("predicted_step", plan.predictedStep) ||
         nanos("bound_step", plan.boundStep) ||
         nanos("objective_step", plan.objectiveStep);
}

void Parser::training() {
  Training &t = plan.training;
  std::map<std::string_view, double *> reals = {
      {"learning_rate", &t.learningRate}, {"momentum", &t.momentum},
      {"beta1", &t.beta1},                {"beta2", &t.beta2},
      {"epsilon", &t.epsilon},            {"weight_decay", &t.weightDecay},
      {"min_learning_rate", &t.minLearningRate}};
  std::map<std::string_view, int64_t *> integers = {
      {"global_batch", &t.globalBatch},
      {"warmup_steps", &t.warmupSteps},
      {"total_steps", &t.totalSteps}};
  in.expect("{");
  while (!in.accept("}")) {
    size_t at = in.position();
    std::string_view word = in.word("a training setting or '}'");
    if (reals.count(word))
      *reals[word] = in.real();
    else if (integers.count(word))
      *integers[word] = in.integer<int64_t>();
    else if (word == "micro_batches")
      t.microBatches = in.integer<int32_t>();
    else if (word == "seed")
      t.seed = in.integer<uint64_t>();
    else if (word == "optimizer")
      t.optimizer = value<OptimizerKind>("optimizer");
    else if (word == "schedule")
      t.schedule = value<LrSchedule>("learning-rate schedule");
    else
      in.failAt(at, fmt::format("unknown training setting '{}'", word));
  }
}

void Parser::modelStatement() {
  size_t at = in.position();
  if (in.acceptWord("input")) {
    InputInfo input;
    input.name = in.name("the input's name");
    input.dtype = value<DType>("element type");
    input.shape = integers<int64_t>();
    in.expectWord("classes");
    input.classes = in.integer<int64_t>();
    plan.inputs.push_back(std::move(input));
  } else if (in.acceptWord("layer")) {
    LayerInfo layer;
    layer.name = in.name("the layer's name");
    layer.kind = in.name("the layer's kind");
    plan.layers.push_back(std::move(layer));
  } else if (in.acceptWord("param")) {
    Param param;
    param.name = in.name("the parameter's name");
    add(params, param.name, at, "parameter");
    param.shape = integers<int64_t>();
    param.init = value<InitKind>("initialiser");
    param.initScale = in.real();
    param.trainable = !in.acceptWord("frozen");
    plan.params.push_back(std::move(param));
  } else if (in.acceptWord("channel")) {
    channel();
  } else if (in.acceptWord("group")) {
    group();
  } else {
    std::string_view word = in.peekWord();
    in.fail(word.empty() ? "expected a statement"
                         : fmt::format("unknown statement '{}'", word));
  }
}

Link Parser::link() {
  Link link;
  in.expectWord("link");
  link.name = in.name("the link's name");
  in.expectWord("latency");
  link.latency = in.integer<Nanos>();
  in.expectWord("bandwidth");
  link.bytesPerSecond = in.real();
  return link;
}

void Parser::channel() {
  Channel channel;
  size_t at = in.position();
  channel.name = in.name("the channel's name");
  add(channels, channel.name, at, "channel");
  channel.kind = value<ChannelKind>("kind of channel");
  Later source = later("role");
  in.expect("->");
  channelEnds.emplace_back(source, later("role"));
  in.expectWord("bytes");
  channel.bytes = in.integer<Bytes>();
  channel.link = link();
  plan.channels.push_back(std::move(channel));
}

void Parser::group() {
  Group group;
  size_t at = in.position();
  group.name = in.name("the group's name");
  add(groups, group.name, at, "group");
  in.expectWord("of");
  groupRoles.push_back(later("role"));
  group.link = link();
  plan.groups.push_back(std::move(group));
}

void Parser::resolveRoles() {
  auto indexOf = [&](const Later &role) {
    return static_cast<uint16_t>(find(roles, role.name, role.at, "role"));
  };
  if (plan.roles.size() > 0xffff)
    in.fail("more than 65535 roles");
  for (size_t i = 0; i < channelEnds.size(); ++i) {
    plan.channels[i].srcRole = indexOf(channelEnds[i].first);
    plan.channels[i].dstRole = indexOf(channelEnds[i].second);
  }
  for (size_t i = 0; i < groupRoles.size(); ++i)
    plan.groups[i].role = indexOf(groupRoles[i]);
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

BufferRef Parser::buffer() {
  BufferRef ref;
  ref.pool = static_cast<uint16_t>(use(pools, "pool"));
  in.expect("+");
  ref.offset = in.integer<Bytes>();
  in.expect(":");
  ref.bytes = in.integer<Bytes>();
  return ref;
}

std::vector<BufferRef> Parser::bufferList() {
  return sequence<BufferRef>("[", "]", [&] { return buffer(); });
}

Endpoint Parser::endpoint(const NameIndex &index, const char *what) {
  Endpoint end;
  end.target = static_cast<uint16_t>(use(index, what));
  in.expectWord("at");
  end.buffer = buffer();
  return end;
}

void Parser::pool(Role &role) {
  Pool pool;
  size_t at = in.position();
  pool.name = in.name("the pool's name");
  add(pools, pool.name, at, "pool");
  if (pools.size() > 0xffff)
    in.failAt(at, "more than 65535 pools");
  pool.kind = value<PoolKind>("kind of pool");
  in.expectWord("base");
  pool.base = in.integer<Bytes>();
  in.expectWord("slots");
  pool.count = in.integer<int32_t>();
  in.expectWord("x");
  pool.slotBytes = in.integer<Bytes>();
  if (in.acceptWord("of"))
    pool.slotOf = integers<uint16_t>();
  role.pools.push_back(std::move(pool));
}

void Parser::procedure(Role &role) {
  Procedure procedure;
  size_t at = in.position();
  procedure.name = in.name("the procedure's name");
  in.expectWord("stage");
  procedure.stage = in.integer<int32_t>();
  if (!procedures
           .emplace(std::make_pair(procedure.stage, procedure.name),
                    role.procedures.size())
           .second)
    in.failAt(at, fmt::format("a second procedure {}.{}", procedure.stage,
                              procedure.name));
  procedure.phase = value<Phase>("phase");
  in.expectWord("cost");
  procedure.cost = in.integer<Nanos>();
  in.expect("{");
  while (!in.accept("}")) {
    Kernel kernel;
    kernel.kind = value<KernelKind>("kernel");
    kernel.phase = value<Phase>("phase");
    if (in.acceptWord("layer"))
      kernel.layer = in.integer<int32_t>();
    kernel.operands =
        sequence<BufferRef>("(", ")", [&] { return buffer(); });
    kernel.dims = integers<int64_t>();
    if (in.accept("{")) {
      do
        kernel.scalars.push_back(in.real());
      while (in.accept(","));
      in.expect("}");
    }
    procedure.kernels.push_back(std::move(kernel));
  }
  role.procedures.push_back(std::move(procedure));
}

Instr Parser::instr(Lane &lane) {
  Instr instr;
  instr.kind = value<InstrKind>("instruction");
  size_t at = in.position();
  if (instr.kind == InstrKind::Call) {
    auto stage = in.integer<int32_t>();
    in.expect(".");
    std::string name = in.name("the procedure's name");
    auto entry = procedures.find({stage, name});
    if (entry == procedures.end())
      in.failAt(at, fmt::format("no procedure {}.{}", stage, name));
    instr.target = static_cast<uint16_t>(entry->second);
  } else if (instr.kind == InstrKind::AllReduce) {
    instr.target = static_cast<uint16_t>(use(groups, "group"));
  } else if (instr.kind != InstrKind::Load) {
    instr.target = static_cast<uint16_t>(use(channels, "channel"));
  }
  if (in.nextIsNumber())
    instr.microBatch = in.integer<int32_t>();
  instr.waitBegin = static_cast<uint32_t>(lane.waits.size());
  if (in.acceptWord("after")) {
    do {
      waitLanes.back().push_back(later("lane"));
      in.expect(":");
      lane.waits.push_back({0, in.integer<uint32_t>()});
    } while (in.accept(","));
  }
  instr.waitEnd = static_cast<uint32_t>(lane.waits.size());
  return instr;
}

void Parser::lane(Role &role) {
  Lane lane;
  size_t at = in.position();
  lane.name = in.name("the lane's name");
  add(lanes, lane.name, at, "lane");
  lane.kind = value<LaneKind>("kind of lane");
  waitLanes.emplace_back();
  in.expect("{");
  while (!in.accept("}"))
    lane.instrs.push_back(instr(lane));
  role.lanes.push_back(std::move(lane));
}

void Parser::resolveWaits(Role &role) {
  for (size_t i = 0; i < role.lanes.size(); ++i)
    for (size_t w = 0; w < waitLanes[i].size(); ++w)
      role.lanes[i].waits[w].lane = static_cast<uint16_t>(
          find(lanes, waitLanes[i][w].name, waitLanes[i][w].at, "lane"));
}

bool Parser::roleStatement(Role &role) {
  if (in.acceptWord("ranks")) {
    role.firstRank = in.integer<int32_t>();
    in.expect("+");
    role.replicas = in.integer<int32_t>();
  } else if (in.acceptWord("stages")) {
    role.stages = integers<int32_t>();
  } else if (in.acceptWord("devices")) {
    role.devices = integers<int32_t>();
  } else if (in.acceptWord("loss")) {
    role.hasLoss = true;
  } else if (in.acceptWord("arena")) {
    role.arenaBytes = in.integer<Bytes>();
    in.expectWord("liveness");
    role.livenessBytes = in.integer<Bytes>();
    in.expectWord("capacity");
    role.capacity = in.integer<Bytes>();
    in.expectWord("in_flight");
    role.peakInFlight = in.integer<int32_t>();
  } else if (in.acceptWord("pool")) {
    pool(role);
  } else if (in.acceptWord("load")) {
    std::string input = in.name("the input's name");
    in.expectWord("at");
    role.loads.push_back({std::move(input), buffer()});
  } else if (in.acceptWord("param")) {
    RoleParam param;
    param.param = static_cast<int32_t>(use(params, "parameter"));
    in.expectWord("at");
    param.weight = buffer();
    in.expectWord("grads");
    param.grads = bufferList();
    in.expectWord("state");
    param.state = bufferList();
    role.params.push_back(std::move(param));
  } else if (in.acceptWord("channel")) {
    role.channels.push_back(endpoint(channels, "channel"));
  } else if (in.acceptWord("group")) {
    role.groups.push_back(endpoint(groups, "group"));
  } else if (in.acceptWord("procedure")) {
    procedure(role);
  } else if (in.acceptWord("lane")) {
    lane(role);
  } else {
    return false;
  }
  return true;
}

void Parser::role() {
  pools.clear();
  lanes.clear();
  procedures.clear();
  waitLanes.clear();
  Role role;
  size_t at = in.position();
  role.name = in.name("the role's name");
  add(roles, role.name, at, "role");
  in.expect("{");
  while (roleStatement(role)) {
  }
  in.expect("}");
  resolveWaits(role);
  plan.roles.push_back(std::move(role));
}

Plan Parser::parse() {
  in.expectWord(kMagic);
  size_t at = in.position();
  auto major = in.integer<int32_t>();
  in.expect(".");
  auto minor = in.integer<int32_t>();
  if (major != Plan::kFormatMajor)
    in.failAt(at, fmt::format("written in plan format {}.{}, this program "
                              "reads {}.x",
                              major, minor, Plan::kFormatMajor));
  while (!in.atEnd()) {
    if (in.acceptWord("training"))
      training();
    else if (in.acceptWord("role"))
      role();
    else if (!headerStatement())
      modelStatement();
  }
  resolveRoles();
  return std::move(plan);
}

} // namespace

bool looksLikePlanText(std::string_view text) {
  return text.substr(0, kMagic.size()) == kMagic;
}

Plan parsePlanText(std::string_view text, const std::string &name) {
  Plan plan = Parser(text, name).parse();
  requireSound(plan, name);
  return plan;
}

} // namespace takt::rt
