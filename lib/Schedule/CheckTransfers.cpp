//===- CheckTransfers.cpp - sends and receives of schedule files
//-----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Which transfers a placement needs, and whether a file has them where they can
// work.
//
// A boundary b lies between stages b and b + 1. Activations cross it upwards,
// gradients downwards; each direction is a channel whose messages keep their
// order. A send never blocks the row it stands in; what uses a value waits for
// the send of it.
//
//===----------------------------------------------------------------------===//
#include "TransferActions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

using namespace takt;
using Kind = FileActionKind;

namespace {

/// Row of an action and place in it; row -1: nowhere.
struct Spot {
  int32_t row = -1, place = -1;
  bool found() const { return row >= 0; }
};

/// Places of all actions of a file.
class Index {
public:
  explicit Index(const ScheduleFile &file) : file(file) {
    // B counts as the I and the W that it holds.
    spots.resize(size_t(file.stages) * file.microBatches * kKinds);
  }
  Spot &at(const FileAction &a) {
    return spots[(size_t(a.stage) * file.microBatches + a.microBatch) * kKinds +
                 static_cast<size_t>(a.kind)];
  }
  Spot &at(Kind kind, int32_t stage, int32_t m) {
    return at(make(kind, stage, m));
  }
  /// Where the input gradient is made: by I or B.
  Spot backward(int32_t stage, int32_t m) {
    const Spot whole = at(Kind::B, stage, m);
    return whole.found() ? whole : at(Kind::I, stage, m);
  }

private:
  static constexpr size_t kKinds = 8;
  const ScheduleFile &file;
  std::vector<Spot> spots;
};

class TransferCheck {
public:
  TransferCheck(const ScheduleFile &file, const std::vector<int32_t> &rankOf,
                Diagnostics &diags)
      : file(file), rankOf(rankOf), diags(diags), index(file) {}

  bool run() {
    if (!indexActions())
      return false;
    if (!file.hasTransfers())
      return checkPlaces();
    if (!checkPresence() || !checkPlaces() || !checkOrder() || !execute())
      return false;
    warnAboutPairs();
    return true;
  }

private:
  SourceLoc locOf(const Spot &spot) const {
    const FileAction &a = file.rows[spot.row][spot.place];
    return {file.name, a.line, a.column};
  }
  const FileAction &actionAt(const Spot &spot) const {
    return file.rows[spot.row][spot.place];
  }
  std::string named(const Spot &spot) const {
    return fmt::format("'{}' of rank {}", toText(actionAt(spot)), spot.row);
  }
  bool fail(const Spot &spot, std::string message, const Spot &other = {},
            std::string remark = {}) {
    Diagnostic &error = diags.error(locOf(spot), std::move(message));
    if (other.found())
      error.note(locOf(other), std::move(remark));
    return false;
  }

  bool indexActions();
  bool checkWait(const Spot &spot);
  bool checkStranger(const Spot &spot);
  bool checkPresence();
  bool checkPlaces();
  bool checkOrder();
  bool execute();
  void warnAboutPairs();
  Spot needOf(const FileAction &a);

  const ScheduleFile &file;
  const std::vector<int32_t> &rankOf;
  Diagnostics &diags;
  Index index;
  std::set<std::tuple<Kind, int32_t, int32_t>> waited; ///< sends
};

/// A transfer that this placement has no use for.
bool TransferCheck::checkStranger(const Spot &spot) {
  const FileAction &a = actionAt(spot);
  const std::string text = toText(a);
  if (a.stage >= file.stages || a.microBatch >= file.microBatches)
    return fail(spot,
                fmt::format("'{}' of rank {}: the rows compute {} stages "
                            "and {} micro-batches",
                            text, spot.row, file.stages, file.microBatches));
  if (rankOf[a.stage] != spot.row)
    return fail(spot, fmt::format("'{}' is in the row of rank {}, but stage {} "
                                  "is computed by rank {}",
                                  text, spot.row, a.stage, rankOf[a.stage]));
  const int32_t peer = otherEnd(a).stage;
  if (peer < 0 || peer >= file.stages)
    return fail(spot, fmt::format("'{}' of rank {}: stage {} has no neighbour "
                                  "on that side",
                                  text, spot.row, a.stage));
  if (rankOf[peer] == spot.row)
    return fail(spot, fmt::format("'{}': stages {} and {} are both on rank "
                                  "{}, nothing is sent between them",
                                  text, a.stage, peer, spot.row));
  return true;
}

/// A wait names a send that stands before it in its row, and no other does.
bool TransferCheck::checkWait(const Spot &spot) {
  const FileAction &a = actionAt(spot);
  const FileAction send =
      make(a.kind == Kind::WaitSendF ? Kind::SendF : Kind::SendB, a.stage,
           a.microBatch);
  if (a.stage >= file.stages || a.microBatch >= file.microBatches ||
      index.at(send).row != spot.row)
    return fail(spot, fmt::format("{} waits for '{}', which does not stand "
                                  "before it",
                                  named(spot), toText(send)));
  if (!waited.insert({send.kind, send.stage, send.microBatch}).second)
    return fail(spot, fmt::format("'{}' stands twice", toText(a)));
  return true;
}

bool TransferCheck::indexActions() {
  for (size_t r = 0; r < file.rows.size(); ++r)
    for (size_t i = 0; i < file.rows[r].size(); ++i) {
      const FileAction &a = file.rows[r][i];
      const Spot spot{int32_t(r), int32_t(i)};
      if (a.isWait()) {
        if (!checkWait(spot))
          return false;
        continue;
      }
      if (!a.isCompute() && !a.isTransfer()) {
        if (a.stage >= file.stages || rankOf[a.stage] != spot.row)
          return fail(spot, fmt::format("'{}' is in the row of rank {}, which "
                                        "does not compute stage {}",
                                        toText(a), r, a.stage));
        continue;
      }
      if (a.isTransfer() && !checkStranger(spot))
        return false;
      Spot &known = index.at(a);
      if (known.found())
        return fail(spot, fmt::format("'{}' stands twice", toText(a)), known,
                    "first here");
      known = spot;
    }
  return true;
}

/// Each transfer has its other end, and every value that crosses has one.
bool TransferCheck::checkPresence() {
  for (int32_t b = 0; b + 1 < file.stages; ++b) {
    if (rankOf[b] == rankOf[b + 1])
      continue;
    for (int32_t m = 0; m < file.microBatches; ++m)
      for (const FileAction &need :
           {make(Kind::SendF, b, m), make(Kind::RecvF, b + 1, m),
            make(Kind::SendB, b + 1, m), make(Kind::RecvB, b, m)}) {
        if (index.at(need).found())
          continue;
        const Spot other = index.at(otherEnd(need));
        if (other.found())
          return fail(other, fmt::format("{} has no other end: '{}' is missing "
                                         "from the row of rank {}",
                                         named(other), toText(need),
                                         rankOf[need.stage]));
        const Spot user = need.kind == Kind::SendF || need.kind == Kind::RecvF
                              ? index.at(Kind::F, b + 1, m)
                              : index.backward(b, m);
        return fail(user,
                    fmt::format("{} needs '{}', which is missing from "
                                "the row of rank {}",
                                named(user), toText(need), rankOf[need.stage]));
      }
  }
  return true;
}

/// A send stands behind what makes its value, a receive before what uses it,
/// a gradient reduction behind the last backward of its stage.
bool TransferCheck::checkPlaces() {
  for (size_t r = 0; r < file.rows.size(); ++r) {
    std::map<int32_t, int32_t> reduced; // stage -> place
    for (size_t i = 0; i < file.rows[r].size(); ++i) {
      const FileAction &a = file.rows[r][i];
      const Spot spot{int32_t(r), int32_t(i)};
      if (a.kind == Kind::ReduceGrad)
        reduced[a.stage] = int32_t(i);
      if (a.isCompute() && a.kind != Kind::F && reduced.count(a.stage))
        return fail(spot,
                    fmt::format("{} adds to gradients that are already reduced",
                                named(spot)),
                    {int32_t(r), reduced[a.stage]}, "reduced here");
      if (!a.isTransfer())
        continue;
      const bool activation = a.kind == Kind::SendF || a.kind == Kind::RecvF;
      const Spot call = activation ? index.at(Kind::F, a.stage, a.microBatch)
                                   : index.backward(a.stage, a.microBatch);
      if (isSend(a.kind) && spot.place < call.place)
        return fail(spot,
                    fmt::format("{} sends what '{}' makes later", named(spot),
                                toText(actionAt(call))),
                    call, "made here");
      if (!isSend(a.kind) && spot.place > call.place)
        return fail(call,
                    fmt::format("{} needs '{}', which comes later", named(call),
                                toText(a)),
                    spot, "received here");
    }
  }
  return true;
}

/// Messages of a channel arrive in the order in which they are sent.
bool TransferCheck::checkOrder() {
  using Channel = std::pair<int32_t, bool>; // boundary, is a gradient
  std::map<Channel, std::vector<Spot>> sends, receives;
  for (size_t r = 0; r < file.rows.size(); ++r)
    for (size_t i = 0; i < file.rows[r].size(); ++i) {
      const FileAction &a = file.rows[r][i];
      if (!a.isTransfer())
        continue;
      const bool gradient = a.kind == Kind::SendB || a.kind == Kind::RecvB;
      const int32_t boundary = std::min(a.stage, otherEnd(a).stage);
      auto &side = isSend(a.kind) ? sends : receives;
      side[{boundary, gradient}].push_back({int32_t(r), int32_t(i)});
    }
  for (auto &[channel, out] : sends) {
    const std::vector<Spot> &in = receives[channel];
    for (size_t i = 0; i < out.size(); ++i)
      if (actionAt(out[i]).microBatch != actionAt(in[i]).microBatch)
        return fail(in[i],
                    fmt::format("{} is message {} of its channel, but the "
                                "other end sends '{}' as that",
                                named(in[i]), i, toText(actionAt(out[i]))),
                    out[i], "sent here");
  }
  return true;
}

/// What must have begun in another row before this action can: a value made on
/// another rank, by its send; the receive of a send that ends. No row for an
/// action that needs none.
Spot TransferCheck::needOf(const FileAction &a) {
  const int32_t m = a.microBatch;
  if (a.kind == Kind::WaitSendF)
    return index.at(Kind::RecvF, a.stage + 1, m);
  if (a.kind == Kind::WaitSendB)
    return index.at(Kind::RecvB, a.stage - 1, m);
  if (a.kind == Kind::F && a.stage > 0 &&
      rankOf[a.stage - 1] != rankOf[a.stage])
    return index.at(Kind::SendF, a.stage - 1, m);
  if ((a.kind == Kind::I || a.kind == Kind::B) && a.stage + 1 < file.stages &&
      rankOf[a.stage + 1] != rankOf[a.stage])
    return index.at(Kind::SendB, a.stage + 1, m);
  return {};
}

bool TransferCheck::execute() {
  const size_t rows = file.rows.size();
  std::vector<int32_t> heads(rows, 0);
  std::vector<std::vector<int32_t>> waiting(rows);
  std::vector<int32_t> work;
  for (size_t r = rows; r-- > 0;)
    work.push_back(int32_t(r));
  while (!work.empty()) {
    const int32_t r = work.back();
    work.pop_back();
    const int32_t before = heads[r];
    while (heads[r] < int32_t(file.rows[r].size())) {
      const Spot need = needOf(file.rows[r][heads[r]]);
      if (need.found() && need.place >= heads[need.row]) {
        waiting[need.row].push_back(r);
        break;
      }
      ++heads[r];
    }
    if (heads[r] == before)
      continue;
    work.insert(work.end(), waiting[r].rbegin(), waiting[r].rend());
    waiting[r].clear();
  }
  for (size_t r = 0; r < rows; ++r)
    if (heads[r] < int32_t(file.rows[r].size())) {
      // Follow the waits until a row comes again: that is the circle.
      std::set<int32_t> seen;
      int32_t at = int32_t(r);
      while (seen.insert(at).second)
        at = needOf(file.rows[at][heads[at]]).row;
      const Spot head{at, heads[at]};
      const Spot need = needOf(actionAt(head));
      const Spot other{need.row, heads[need.row]};
      return fail(
          head,
          fmt::format("the rows wait for each other in a circle: {} "
                      "needs '{}', but rank {} is at '{}'",
                      named(head), toText(actionAt(need)), need.row,
                      toText(actionAt(other))),
          other,
          fmt::format("rank {} stands here and waits in turn", need.row));
    }
  return true;
}

/// Two ranks that share several channels: NCCL pairs their messages by order
/// alone. Takt has a channel a boundary and does not mind.
void TransferCheck::warnAboutPairs() {
  using Pair = std::pair<int32_t, int32_t>; // from, to
  std::map<Pair, std::vector<Spot>> sends, receives;
  for (size_t r = 0; r < file.rows.size(); ++r)
    for (size_t i = 0; i < file.rows[r].size(); ++i) {
      const FileAction &a = file.rows[r][i];
      if (!a.isTransfer())
        continue;
      const int32_t peer = rankOf[otherEnd(a).stage];
      if (isSend(a.kind))
        sends[{int32_t(r), peer}].push_back({int32_t(r), int32_t(i)});
      else
        receives[{peer, int32_t(r)}].push_back({int32_t(r), int32_t(i)});
    }
  for (auto &[pair, out] : sends) {
    const std::vector<Spot> &in = receives[pair];
    for (size_t i = 0; i < out.size(); ++i) {
      const std::string expected = toText(otherEnd(actionAt(out[i])));
      if (toText(actionAt(in[i])) == expected)
        continue;
      diags
          .warning(
              locOf(in[i]),
              fmt::format("rank {} receives '{}' where rank {} sends '{}': "
                          "NCCL pairs messages of two ranks by their "
                          "order",
                          pair.second, toText(actionAt(in[i])), pair.first,
                          toText(actionAt(out[i]))))
          .note(locOf(out[i]), "sent here");
      break;
    }
  }
}

} // namespace

bool takt::checkTransfers(const ScheduleFile &file,
                          const std::vector<int32_t> &rankOf,
                          Diagnostics &diags) {
  return TransferCheck(file, rankOf, diags).run();
}
