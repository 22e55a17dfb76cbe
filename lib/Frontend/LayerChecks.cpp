//===- LayerChecks.cpp - checks of the whole model ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What only shows when all layers are known. Run on a model without faults so
// far, because a misspelt reference leaves its real target unused.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include "takt/Frontend/Read.h"

#include <fmt/format.h>

#include <set>

using namespace takt;

void LayerReader::checkWhole() {
  checkLast();
  checkUses();
  checkSizes();
}

void LayerReader::checkLast() {
  const ItemSpec &item = spec.items.back();
  const LayerSpec &last = item.repeat ? item.repeat->body.back() : item.layer;
  if (lossName.empty() && last.kind != LayerKind::Profiled &&
      spec.training.mode == rt::Mode::Training)
    reader.error(
        item.repeat ? item.repeat->loc : last.loc,
        fmt::format("the last layer must be a loss (cross_entropy or "
                    "mean_squared_error), not '{}'",
                    item.repeat ? "repeat" : layerKindName(last.kind)));
}

void LayerReader::checkUses() {
  const ItemSpec &item = spec.items.back();
  std::string result = item.repeat ? item.repeat->name : item.layer.name;
  for (const auto &[name, value] : values) {
    if (value.used || name == result || name == kUnknownValue)
      continue;
    if (value.input >= 0)
      reader.error(value.loc,
                   fmt::format("no layer reads the input '{}'", name));
    else if (kinds.count(name))
      reader.error(value.loc,
                   fmt::format("no layer reads the output of '{}'", name));
    else
      reader.error(value.loc,
                   fmt::format("no layer of the repeat reads the input of the "
                               "block, '{}'",
                               name));
  }
}

void LayerReader::checkSizes() {
  // In doubles: far from the limits exactness does not matter.
  double layers = 0, parameters = 0, activation = 0, time = 0;
  bool anyParam = false, anyTrainable = false;
  double batch = static_cast<double>(spec.training.globalBatch);
  auto add = [&](const LayerSpec &layer, double times) {
    layers += times;
    activation += times * batch * static_cast<double>(layer.type.bytes());
    for (const ParamSpec &param : layer.params) {
      anyParam = true;
      anyTrainable = anyTrainable || param.trainable;
      if (!param.tied)
        parameters += times * static_cast<double>(*countElements(param.shape));
    }
    const ProfiledCost &cost = layer.profiled;
    if (layer.kind == LayerKind::Profiled) {
      anyParam = true;
      anyTrainable = anyTrainable || cost.trainable;
      double perSample = 1.0 / static_cast<double>(cost.samples);
      parameters += times * static_cast<double>(cost.parameters) / 4;
      activation +=
          times * batch * perSample * static_cast<double>(cost.activation);
      time +=
          times * batch * perSample *
          static_cast<double>(cost.forward + cost.inputGrad + cost.weightGrad);
    }
  };
  for (const ItemSpec &item : spec.items) {
    if (!item.repeat)
      add(item.layer, 1);
    else
      for (const LayerSpec &layer : item.repeat->body)
        add(layer, static_cast<double>(item.repeat->count));
  }
  constexpr double kMaxSum = 1e18; // below int64's 9.2e18
  if (layers > static_cast<double>(kMaxLayers))
    reader.error(spec.loc,
                 fmt::format("the model has {} layers with its repeats "
                             "unrolled; the limit is {}",
                             layers, kMaxLayers));
  if (parameters * 16 > kMaxSum)
    reader.error(spec.loc, fmt::format("the model has {:.3g} parameters, more "
                                       "than can be addressed",
                                       parameters));
  if (activation > kMaxSum)
    reader.error(spec.loc,
                 fmt::format("the layers' outputs take {:.3g} bytes a "
                             "step, more than can be addressed",
                             activation));
  if (time > kMaxSum)
    reader.error(spec.loc, fmt::format("the profiled layers take {:.3g} s a "
                                       "step; the limit is 1e9 s",
                                       time / 1e9));
  if (!anyTrainable && spec.training.mode == rt::Mode::Training)
    reader.error(spec.loc, anyParam ? "every layer is frozen: there is nothing "
                                      "to train"
                                    : "no layer has parameters: there is "
                                      "nothing to train");
}
