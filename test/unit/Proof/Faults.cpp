//===- Faults.cpp - one fault in a correct plan -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Waits name instructions by their number in a lane. Where an instruction comes
// or goes, the waits of the others are moved along with what they meant, so that
// the fault is just the one.
//
//===----------------------------------------------------------------------===//
#include "Faults.h"

#include <algorithm>
#include <functional>
#include <random>

namespace takt::test {

using rt::InstrKind;

const char *nameOf(Fault fault) {
  static const char *const names[kFaults] = {
      "swap",          "drop",       "double",     "early",
      "shifted",       "wrong peer", "wrong size", "stale slot",
      "overlap",       "no wait",    "no credit",  "extra wait"};
  return names[static_cast<int>(fault)];
}

namespace {

class Breaker {
public:
  Breaker(rt::Plan &plan, uint32_t seed) : plan(plan), random(seed) {}
  std::optional<Culprit> apply(Fault fault);

private:
  size_t below(size_t n) { return n ? random() % n : 0; }
  rt::Role &own() { return plan.roles[role]; }
  rt::Lane &code() { return own().lanes[lane]; }
  std::string text(const rt::Instr &instr) {
    return rt::actionText(plan, own(), instr);
  }
  Culprit culprit(std::vector<size_t> at, std::string what) {
    Culprit result;
    for (size_t instr : at)
      result.places.push_back({role, lane, instr});
    result.what = std::move(what);
    return result;
  }
  bool pickLane(size_t least);
  bool pickWait(const std::function<bool(InstrKind, InstrKind)> &suits,
                size_t &at, uint32_t &wait);
  /// An instruction and those after it on its lane for the same micro-batch,
  /// which rely on its waits.
  std::vector<size_t> relying(size_t at) {
    std::vector<size_t> all;
    for (size_t i = at; i < code().instrs.size(); ++i)
      if (code().instrs[i].microBatch == code().instrs[at].microBatch)
        all.push_back(i);
    return all;
  }
  /// Waits for instruction p of the lane wait for `to(p)` instead.
  void moveWaits(const std::function<size_t(size_t)> &to);
  std::optional<Place> mateOf(size_t at);

  std::optional<Culprit> swap();
  std::optional<Culprit> drop();
  std::optional<Culprit> twice();
  std::optional<Culprit> early(bool waitsFollow);
  std::optional<Culprit> wrongChannel();
  std::optional<Culprit> wrongSize();
  std::optional<Culprit> staleSlot();
  std::optional<Culprit> overlap();
  std::optional<Culprit> noWait(bool credit);
  std::optional<Culprit> extraWait();

  rt::Plan &plan;
  std::mt19937 random;
  size_t role = 0, lane = 0;
};

constexpr int kTries = 30;

bool Breaker::pickLane(size_t least) {
  for (int tries = 0; tries < kTries; ++tries) {
    role = below(plan.roles.size());
    lane = below(own().lanes.size());
    if (code().instrs.size() >= least)
      return true;
  }
  return false;
}

void Breaker::moveWaits(const std::function<size_t(size_t)> &to) {
  for (rt::Lane &other : own().lanes)
    for (rt::Wait &wait : other.waits)
      if (wait.lane == lane && wait.count > 0)
        wait.count = static_cast<uint32_t>(to(wait.count - 1) + 1);
}

/// The other end of a message, by its number in the channel.
std::optional<Place> Breaker::mateOf(size_t at) {
  const rt::Instr &instr = code().instrs[at];
  bool sends = instr.kind == InstrKind::Send;
  if (!sends && instr.kind != InstrKind::Recv)
    return std::nullopt;
  size_t number = 0;
  for (size_t i = 0; i < at; ++i)
    number += code().instrs[i].kind == instr.kind &&
              code().instrs[i].target == instr.target;
  const rt::Channel &channel = plan.channels[instr.target];
  size_t peer = sends ? channel.dstRole : channel.srcRole;
  InstrKind kind = sends ? InstrKind::Recv : InstrKind::Send;
  for (size_t l = 0; l < plan.roles[peer].lanes.size(); ++l) {
    const rt::Lane &other = plan.roles[peer].lanes[l];
    for (size_t i = 0; i < other.instrs.size(); ++i)
      if (other.instrs[i].kind == kind &&
          other.instrs[i].target == instr.target && number-- == 0)
        return Place{peer, l, i};
  }
  return std::nullopt;
}

std::optional<Culprit> Breaker::swap() {
  if (!pickLane(2))
    return std::nullopt;
  size_t at = below(code().instrs.size() - 1);
  std::swap(code().instrs[at], code().instrs[at + 1]);
  return culprit({at, at + 1}, text(code().instrs[at + 1]) + " and " +
                                   text(code().instrs[at]) + " swapped");
}

std::optional<Culprit> Breaker::drop() {
  if (!pickLane(1))
    return std::nullopt;
  size_t at = below(code().instrs.size());
  const rt::Instr gone = code().instrs[at];
  Culprit result = culprit({}, text(gone) + " dropped");
  result.missing = text(gone);
  if (std::optional<Place> mate = mateOf(at))
    result.places.push_back(*mate);
  // Those that wait for it; calls of the same micro-batch, which may read what
  // it leaves without a wait, as they are on its lane; and those of the step,
  // which take every sum.
  for (size_t l = 0; l < own().lanes.size(); ++l) {
    const rt::Lane &other = own().lanes[l];
    for (size_t i = 0; i < other.instrs.size(); ++i) {
      const rt::Instr &instr = other.instrs[i];
      bool needs = instr.kind == InstrKind::Call &&
                   ((gone.kind == InstrKind::AllReduce &&
                     instr.microBatch < 0) ||
                    (gone.kind == InstrKind::Call && l == lane && i > at &&
                     (instr.microBatch == gone.microBatch ||
                      instr.microBatch < 0)));
      for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
        needs |= other.waits[w].lane == lane && other.waits[w].count == at + 1;
      if (needs)
        result.places.push_back({role, l, l == lane && i > at ? i - 1 : i});
    }
  }
  code().instrs.erase(code().instrs.begin() + static_cast<int64_t>(at));
  for (rt::Lane &other : own().lanes)
    for (rt::Wait &wait : other.waits)
      if (wait.lane == lane && wait.count > at)
        --wait.count;
  return result;
}

std::optional<Culprit> Breaker::twice() {
  if (!pickLane(1))
    return std::nullopt;
  size_t at = below(code().instrs.size());
  rt::Instr again = code().instrs[at];
  code().instrs.insert(code().instrs.begin() + static_cast<int64_t>(at), again);
  moveWaits([&](size_t p) { return p >= at ? p + 1 : p; });
  return culprit({at, at + 1}, text(again) + " doubled");
}

std::optional<Culprit> Breaker::early(bool waitsFollow) {
  if (!pickLane(3))
    return std::nullopt;
  size_t from = 1 + below(code().instrs.size() - 1), to = below(from);
  auto begin = code().instrs.begin();
  std::rotate(begin + static_cast<int64_t>(to),
              begin + static_cast<int64_t>(from),
              begin + static_cast<int64_t>(from) + 1);
  std::vector<size_t> moved = {to};
  // A lane's count up to `from` means the same instructions as before.
  if (waitsFollow)
    moveWaits([&](size_t p) { return p >= to && p < from ? p + 1 : p; });
  else // what waits for the others now gets less than it meant
    for (size_t i = to + 1; i <= from; ++i)
      moved.push_back(i);
  return culprit(moved, text(code().instrs[to]) + " moved before " +
                            text(code().instrs[to + 1]));
}

std::optional<Culprit> Breaker::wrongChannel() {
  if (plan.channels.size() < 2)
    return std::nullopt;
  for (int tries = 0; tries < kTries && pickLane(1); ++tries) {
    size_t at = below(code().instrs.size());
    rt::Instr &instr = code().instrs[at];
    if (instr.kind != InstrKind::Send && instr.kind != InstrKind::Recv)
      continue;
    Culprit result = culprit({at}, text(instr) + " on another channel");
    if (std::optional<Place> mate = mateOf(at))
      result.places.push_back(*mate);
    instr.target = static_cast<uint16_t>(
        (instr.target + 1 + below(plan.channels.size() - 1)) %
        plan.channels.size());
    return result;
  }
  return std::nullopt;
}

std::optional<Culprit> Breaker::wrongSize() {
  role = below(plan.roles.size());
  if (own().channels.empty())
    return std::nullopt;
  rt::Endpoint &end = own().channels[below(own().channels.size())];
  end.buffer.bytes -= 4;
  Culprit result;
  result.what = "4 bytes less of channel " + plan.channels[end.target].name +
                " in " + own().name;
  for (lane = 0; lane < own().lanes.size(); ++lane)
    for (size_t i = 0; i < code().instrs.size(); ++i)
      if ((code().instrs[i].kind == InstrKind::Send ||
           code().instrs[i].kind == InstrKind::Recv) &&
          code().instrs[i].target == end.target)
        result.places.push_back({role, lane, i});
  return result;
}

bool touches(const rt::Role &role, const rt::Instr &instr, uint16_t pool) {
  auto has = [&](const std::vector<rt::Endpoint> &ends) {
    const rt::Endpoint *end = rt::findEndpoint(ends, instr.target);
    return end && end->buffer.pool == pool;
  };
  switch (instr.kind) {
  case InstrKind::Call:
    for (const rt::Kernel &kernel : role.procedures[instr.target].kernels)
      for (const rt::BufferRef &ref : kernel.operands)
        if (ref.pool == pool)
          return true;
    return false;
  case InstrKind::Load:
    return std::any_of(
        role.loads.begin(), role.loads.end(),
        [&](const rt::LoadField &load) { return load.buffer.pool == pool; });
  case InstrKind::Send:
  case InstrKind::Recv:
    return has(role.channels);
  case InstrKind::AllReduce:
    return has(role.groups);
  }
  return false;
}

std::optional<Culprit> Breaker::staleSlot() {
  role = below(plan.roles.size());
  size_t index = below(own().pools.size());
  rt::Pool &pool = own().pools[index];
  if (pool.count < 2 || pool.slotOf.empty())
    return std::nullopt;
  size_t m = below(pool.slotOf.size());
  pool.slotOf[m] = static_cast<uint16_t>((pool.slotOf[m] + 1) % pool.count);
  Culprit result;
  result.what = "micro-batch " + std::to_string(m) +
                " in another slot of pool " + pool.name + " of " + own().name;
  for (lane = 0; lane < own().lanes.size(); ++lane)
    for (size_t i = 0; i < code().instrs.size(); ++i)
      if (code().instrs[i].microBatch == static_cast<int32_t>(m) &&
          touches(own(), code().instrs[i], static_cast<uint16_t>(index)))
        result.places.push_back({role, lane, i});
  return result;
}

std::optional<Culprit> Breaker::overlap() {
  role = below(plan.roles.size());
  size_t index = below(own().procedures.size());
  rt::Procedure &procedure = own().procedures[index];
  if (procedure.kernels.empty())
    return std::nullopt;
  rt::Kernel &kernel = procedure.kernels[below(procedure.kernels.size())];
  size_t operand = below(kernel.operands.size());
  rt::BufferRef &ref = kernel.operands[operand];
  bool below0 = ref.offset + rt::kAlignment + ref.bytes >
                own().pools[ref.pool].slotBytes;
  ref.offset += below0 ? -rt::kAlignment : rt::kAlignment;
  if (ref.offset < 0)
    return std::nullopt;
  Culprit result;
  result.what = "operand " + std::to_string(operand) + " of a kernel of " +
                procedure.name + " of " + own().name + " moved";
  for (lane = 0; lane < own().lanes.size(); ++lane)
    for (size_t i = 0; i < code().instrs.size(); ++i)
      if (code().instrs[i].kind == InstrKind::Call &&
          code().instrs[i].target == index)
        result.places.push_back({role, lane, i});
  if (result.places.empty())
    return std::nullopt; // never called
  return result;
}

bool Breaker::pickWait(const std::function<bool(InstrKind, InstrKind)> &suits,
                       size_t &at, uint32_t &wait) {
  for (int tries = 0; tries < kTries && pickLane(1); ++tries) {
    at = below(code().instrs.size());
    const rt::Instr &instr = code().instrs[at];
    if (instr.waitBegin == instr.waitEnd)
      continue;
    wait = instr.waitBegin + static_cast<uint32_t>(
                                 below(instr.waitEnd - instr.waitBegin));
    const rt::Wait &on = code().waits[wait];
    if (on.count > 0 &&
        suits(instr.kind, own().lanes[on.lane].instrs[on.count - 1].kind))
      return true;
  }
  return false;
}

/// Data goes from a receive or load to a call and from a call to a send or
/// reduction; what waits the other way round waits for a reader.
std::optional<Culprit> Breaker::noWait(bool credit) {
  auto isCredit = [](InstrKind waits, InstrKind on) {
    return waits == InstrKind::Recv || waits == InstrKind::Load ||
           (waits == InstrKind::Call && on == InstrKind::Send);
  };
  size_t at = 0;
  uint32_t wait = 0;
  if (!pickWait([&](InstrKind waits,
                    InstrKind on) { return isCredit(waits, on) == credit; },
                at, wait))
    return std::nullopt;
  rt::Wait &on = code().waits[wait];
  Culprit result = culprit(
      relying(at), text(code().instrs[at]) + " does not wait for " +
                text(own().lanes[on.lane].instrs[on.count - 1]));
  on.count = 0;
  return result;
}

std::optional<Culprit> Breaker::extraWait() {
  for (int tries = 0; tries < kTries && pickLane(1); ++tries) {
    size_t at = below(code().instrs.size());
    rt::Instr &instr = code().instrs[at];
    if (instr.waitBegin == instr.waitEnd)
      continue;
    rt::Wait &wait = code().waits[instr.waitBegin];
    auto other = static_cast<uint16_t>(below(own().lanes.size()));
    size_t size = own().lanes[other].instrs.size();
    if (other == lane || size == 0)
      continue;
    wait = {other, static_cast<uint32_t>(1 + below(size))};
    return culprit(relying(at), text(instr) + " waits for " +
                             text(own().lanes[other].instrs[wait.count - 1]) +
                             " instead");
  }
  return std::nullopt;
}

std::optional<Culprit> Breaker::apply(Fault fault) {
  switch (fault) {
  case Fault::Swap:
    return swap();
  case Fault::Drop:
    return drop();
  case Fault::Double:
    return twice();
  case Fault::Early:
    return early(true);
  case Fault::Shifted:
    return early(false);
  case Fault::WrongChannel:
    return wrongChannel();
  case Fault::WrongSize:
    return wrongSize();
  case Fault::StaleSlot:
    return staleSlot();
  case Fault::Overlap:
    return overlap();
  case Fault::NoWait:
    return noWait(false);
  case Fault::NoCredit:
    return noWait(true);
  case Fault::ExtraWait:
    return extraWait();
  }
  return std::nullopt;
}

} // namespace

std::optional<Culprit> breakPlan(rt::Plan &plan, Fault fault, uint32_t seed) {
  return Breaker(plan, seed).apply(fault);
}

bool blames(const rt::Plan &plan, const rt::ProofFailure &failure,
            const Culprit &culprit) {
  for (const rt::ProofEnd &end : failure.ends) {
    if (!culprit.missing.empty() &&
        end.action == "(no " + culprit.missing + ")")
      return true;
    for (const Place &place : culprit.places) {
      const rt::Role &role = plan.roles[place.role];
      if (end.role == role.name && end.lane == role.lanes[place.lane].name &&
          end.instr == place.instr && end.action[0] != '(')
        return true;
    }
  }
  return false;
}

} // namespace takt::test
