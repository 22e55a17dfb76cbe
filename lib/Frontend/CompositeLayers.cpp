//===- CompositeLayers.cpp - layers that stand for several ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Attention and gated MLPs with their projections. Inside, each part reads the
// one before; outside, the name is that of the last part.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include <fmt/format.h>

#include <limits>

using namespace takt;

namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

} // namespace

struct LayerReader::Part {
  std::string name;
  Section &section;
  Scope &scope;
  Init init;
  bool trainable;
};

void LayerReader::addCore(const Part &part, const std::string &suffix,
                          LayerSpec layer) {
  layer.name = part.name + "." + suffix;
  layer.inputs = {part.scope.previous};
  layer.loc = part.section.loc();
  values[part.scope.previous].used = true;
  registerName(layer.name, layerKindName(layer.kind), layer.loc);
  finish(std::move(layer), part.scope, part.section.loc());
}

void LayerReader::addLinear(const Part &part, const std::string &suffix,
                            int64_t in, int64_t out, bool hasBias) {
  LayerSpec layer;
  layer.name = part.name + "." + suffix;
  layer.loc = part.section.loc();
  layer.hasBias = hasBias;
  addParam(layer, "weight", {out, in}, part.init, part.trainable);
  if (hasBias)
    addParam(layer, "bias", {out}, {rt::InitKind::Zeros, 0}, part.trainable);
  addCore(part, suffix, std::move(layer));
}

void LayerReader::readAttention(Section &section, LayerSpec &layer,
                                Scope &scope) {
  const std::string name = layer.name, input = layer.inputs[0];
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  bool fine =
      section.require("heads") && section.integer("heads", heads, 1, kMaxDim);
  if (section.find("kv_heads"))
    fine &= section.integer("kv_heads", kvHeads, 1, kMaxDim);
  if (section.find("head_dim"))
    fine &= section.integer("head_dim", headDim, 1, kMaxDim);
  bool hasBias = true;
  section.truth("bias", hasBias);
  bool hasProjBias = hasBias;
  section.truth("proj_bias", hasProjBias);
  double theta = 1e4;
  const bool turns = section.find("rope_theta");
  if (turns)
    fine &= section.real("rope_theta", theta, {0, 1e12, true});
  if (fine && kvHeads > 0 && heads % kvHeads != 0) {
    reader.error(*section.find("kv_heads"),
                 fmt::format("{} heads of keys and values do not divide the {} "
                             "heads of attention '{}'",
                             kvHeads, heads, name));
    fine = false;
  }
  const Value *x = knownValue(layer.inputs, 0);
  int64_t width = 0;
  if (x && x->type.shape.size() != 2) {
    reader.error(section.loc(),
                 fmt::format("attention '{}' needs an input of shape "
                             "[positions, width], not {}",
                             name, shapeText(x->type.shape)));
    x = nullptr;
  }
  if (x) {
    width = x->type.shape[1];
    if (fine && headDim == 0 && width % heads != 0) {
      reader.error(*section.find("heads"),
                   fmt::format("{} heads do not divide the width {} of "
                               "attention '{}'",
                               heads, width, name));
      fine = false;
    }
  }
  const bool ownDim = headDim > 0;
  if (fine && x && !ownDim)
    headDim = width / heads;
  if (kvHeads == 0)
    kvHeads = heads;
  // Three products of numbers below 2^31 each.
  if (fine && x && heads + 2 * kvHeads > kMaxDim / headDim) {
    reader.error(section.loc(),
                 fmt::format("the queries, keys and values of attention '{}' "
                             "are more than {} wide",
                             name, kMaxDim));
    fine = false;
  }
  if (fine && x && turns && headDim % 2 != 0) {
    reader.error(*section.find("rope_theta"),
                 fmt::format("heads of {} elements cannot turn: 'rope_theta' "
                             "needs an even number",
                             headDim));
    fine = false;
  }
  const Part part{name, section, scope,
                  readInit(section, {rt::InitKind::Normal, 0.02}),
                  readTrainable(section, scope)};
  if (!fine || !x) {
    heads = kvHeads = headDim = 1;
    scope.previous = kUnknownValue;
  } else {
    scope.previous = input;
  }

  addLinear(part, "qkv", width, (heads + 2 * kvHeads) * headDim, hasBias);
  if (turns) {
    LayerSpec rotary;
    rotary.kind = LayerKind::Rotary;
    rotary.heads = heads + kvHeads;
    rotary.headDim = headDim;
    rotary.theta = theta;
    addCore(part, "rotary", std::move(rotary));
  }
  LayerSpec core;
  core.kind = LayerKind::Attention;
  core.heads = heads;
  core.kvHeads = kvHeads == heads ? 0 : kvHeads;
  addCore(part, "core", std::move(core));
  addLinear(part, "proj", heads * headDim, width, hasProjBias);
  aliases[name] = scope.previous;
}

void LayerReader::readGatedMlp(Section &section, LayerSpec &layer,
                               Scope &scope) {
  int64_t width = 0;
  const std::string input = layer.inputs[0];
  bool fine = section.require("width") &&
              section.integer("width", width, 1, kMaxDim / 2);
  std::size_t gate = 0;
  if (section.find("activation"))
    fine &=
        section.word("activation", gate, keyTable(modelWords(), "activation"));
  bool hasBias = true;
  section.truth("bias", hasBias);
  const Part part{layer.name, section, scope,
                  readInit(section, {rt::InitKind::Normal, 0.02}),
                  readTrainable(section, scope)};
  const Value *x = knownValue(layer.inputs, 0);
  int64_t in = 0;
  if (x && !x->type.shape.empty())
    in = x->type.shape.back();
  scope.previous = fine && in > 0 ? input : kUnknownValue;

  addLinear(part, "in", in, 2 * width, hasBias);
  LayerSpec core;
  core.kind = LayerKind::Glu;
  core.gate = static_cast<GateKind>(gate);
  addCore(part, "gate", std::move(core));
  addLinear(part, "out", width, in, hasBias);
  aliases[layer.name] = scope.previous;
}
