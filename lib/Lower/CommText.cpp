//===- CommText.cpp - text of communication-level actions -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The action alphabet with sends, receives, collectives and updates. Compute
// and transfer actions are spelled as in PyTorch's pipelining CSV.
//
//===----------------------------------------------------------------------===//
#include "takt/Lower/Lower.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

using namespace takt;

bool CommAction::operator==(const CommAction &o) const {
  return kind == o.kind && stage == o.stage && compute == o.compute &&
         microBatch == o.microBatch && tie == o.tie && peer == o.peer &&
         part == o.part && wait == o.wait;
}

std::string takt::toText(const CommAction &a) {
  if (a.wait) {
    CommAction named = a;
    named.wait = false;
    std::string stage = std::to_string(a.stage);
    return stage + "WAIT_" + toText(named).substr(stage.size());
  }
  switch (a.kind) {
  case CommKind::Compute:
    return toText(Action{a.stage, a.compute, a.microBatch}) +
           (a.part < 0 ? "" : fmt::format(".{}", a.part));
  case CommKind::Load:
    return fmt::format("{}LOAD{}", a.stage, a.microBatch);
  case CommKind::SendF:
    return fmt::format("{}SEND_F{}", a.stage, a.microBatch);
  case CommKind::RecvF:
    return fmt::format("{}RECV_F{}", a.stage, a.microBatch);
  case CommKind::SendB:
    return fmt::format("{}SEND_B{}", a.stage, a.microBatch);
  case CommKind::RecvB:
    return fmt::format("{}RECV_B{}", a.stage, a.microBatch);
  case CommKind::Reduce:
    return fmt::format("{}REDUCE_GRAD{}", a.stage,
                       a.part < 0 ? "" : std::to_string(a.part));
  case CommKind::TieSum:
    return fmt::format("{}TIE_SUM{}", a.stage, a.tie);
  case CommKind::TieSend:
    return fmt::format("{}TIE_SEND{}_{}", a.stage, a.tie, a.peer);
  case CommKind::TieRecv:
    return fmt::format("{}TIE_RECV{}_{}", a.stage, a.tie, a.peer);
  case CommKind::Update:
    return fmt::format("{}UPDATE", a.stage);
  }
  return {};
}

namespace {

/// Takes a decimal number off the front of `text`; false if there is none or it
/// does not fit.
bool takeNumber(std::string_view &text, int32_t &out) {
  if (text.empty() || text[0] < '0' || text[0] > '9')
    return false;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc())
    return false;
  text.remove_prefix(end - text.data());
  return true;
}

bool takeWord(std::string_view &text, std::string_view word) {
  if (text.substr(0, word.size()) != word)
    return false;
  text.remove_prefix(word.size());
  return true;
}

struct Word {
  std::string_view text;
  CommKind kind;
};

constexpr Word kMicroBatchWords[] = {
    {"LOAD", CommKind::Load},    {"SEND_F", CommKind::SendF},
    {"RECV_F", CommKind::RecvF}, {"SEND_B", CommKind::SendB},
    {"RECV_B", CommKind::RecvB},
};
constexpr Word kStepWords[] = {
    {"REDUCE_GRAD", CommKind::Reduce},
    {"UPDATE", CommKind::Update},
};
constexpr Word kTieWords[] = {
    {"TIE_SEND", CommKind::TieSend},
    {"TIE_RECV", CommKind::TieRecv},
};

} // namespace

/// A compute action, or with a dot and a number a piece of one that makes
/// gradients of weights.
static std::optional<CommAction> parseCompute(const std::string &text) {
  size_t dot = text.find('.');
  std::optional<Action> compute = parseAction(text.substr(0, dot));
  if (!compute)
    return std::nullopt;
  CommAction action;
  action.stage = compute->stage;
  action.compute = compute->kind;
  action.microBatch = compute->microBatch;
  if (dot == std::string::npos)
    return action;
  std::string_view piece = std::string_view(text).substr(dot + 1);
  bool hasPieces =
      compute->kind == ActionKind::B || compute->kind == ActionKind::W;
  if (!hasPieces || !takeNumber(piece, action.part) || !piece.empty())
    return std::nullopt;
  return action;
}

std::optional<CommAction> takt::parseCommAction(const std::string &text) {
  if (std::optional<CommAction> compute = parseCompute(text))
    return compute;
  CommAction action;
  std::string_view rest = text;
  if (!takeNumber(rest, action.stage))
    return std::nullopt;
  if (takeWord(rest, "WAIT_")) {
    std::optional<CommAction> named =
        parseCommAction(std::to_string(action.stage) + std::string(rest));
    if (!named || named->wait ||
        (named->kind != CommKind::SendB && named->kind != CommKind::Reduce))
      return std::nullopt;
    named->wait = true;
    return named;
  }
  for (const Word &word : kStepWords)
    if (rest == word.text) {
      action.kind = word.kind;
      return action;
    }
  for (const Word &word : kMicroBatchWords)
    if (takeWord(rest, word.text)) {
      action.kind = word.kind;
      if (!takeNumber(rest, action.microBatch) || !rest.empty())
        return std::nullopt;
      return action;
    }
  if (takeWord(rest, "REDUCE_GRAD")) {
    action.kind = CommKind::Reduce;
    if (!takeNumber(rest, action.part) || !rest.empty())
      return std::nullopt;
    return action;
  }
  if (takeWord(rest, "TIE_SUM")) {
    action.kind = CommKind::TieSum;
    if (!takeNumber(rest, action.tie) || !rest.empty())
      return std::nullopt;
    return action;
  }
  for (const Word &word : kTieWords)
    if (takeWord(rest, word.text)) {
      action.kind = word.kind;
      if (!takeNumber(rest, action.tie) || !takeWord(rest, "_") ||
          !takeNumber(rest, action.peer) || !rest.empty())
        return std::nullopt;
      return action;
    }
  return std::nullopt;
}
