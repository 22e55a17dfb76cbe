//===- text_parser_role.cpp - text to role ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The statements inside a role. Names of pools, lanes and procedures are the
// role's own.
//
//===----------------------------------------------------------------------===//
#include "text_parser.h"

namespace takt::rt {

BufferRef TextParser::buffer() {
  BufferRef ref;
  ref.pool = static_cast<uint16_t>(use(pools, "pool"));
  in.expect("+");
  ref.offset = in.integer<Bytes>();
  in.expect(":");
  ref.bytes = in.integer<Bytes>();
  return ref;
}

std::vector<BufferRef> TextParser::bufferList() {
  return sequence<BufferRef>("[", "]", [&] { return buffer(); });
}

Endpoint TextParser::endpoint(const NameIndex &index, const char *what) {
  Endpoint end;
  end.target = static_cast<uint16_t>(use(index, what));
  in.expectWord("at");
  end.buffer = buffer();
  return end;
}

void TextParser::pool(Role &role) {
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

void TextParser::procedure(Role &role) {
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
    kernel.operands = sequence<BufferRef>("(", ")", [&] { return buffer(); });
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

Instr TextParser::instr(Lane &lane) {
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
  if (in.acceptWord("at"))
    lane.order.push_back(in.integer<uint32_t>());
  return instr;
}

void TextParser::lane(Role &role) {
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

void TextParser::resolveWaits(Role &role) {
  for (size_t i = 0; i < role.lanes.size(); ++i)
    for (size_t w = 0; w < waitLanes[i].size(); ++w)
      role.lanes[i].waits[w].lane = static_cast<uint16_t>(
          find(lanes, waitLanes[i][w].name, waitLanes[i][w].at, "lane"));
}

bool TextParser::roleStatement(Role &role) {
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
  } else if (in.acceptWord("result")) {
    in.expectWord("at");
    role.result = buffer();
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

void TextParser::role() {
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

} // namespace takt::rt
