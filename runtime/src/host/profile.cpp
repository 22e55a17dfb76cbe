//===- profile.cpp - times of layers, measured ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sums and medians behind `takt-run --profile`.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/profile.h"

#include "pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt::rt {

LayerSamples::LayerSamples(size_t layers)
    : sums(layers * kPhases), samples(layers * kPhases) {}

void LayerSamples::add(const Kernel &kernel, Nanos time) {
  if (kernel.layer < 0)
    return;
  size_t i = index(kernel.layer, kernel.phase);
  if (!sums[i].isOpen)
    open.push_back(i);
  sums[i].isOpen = true;
  sums[i].time += time;
}

void LayerSamples::close(bool update) {
  size_t kept = 0;
  for (size_t i : open) {
    if ((i % kPhases == size_t(Phase::Update)) != update) {
      open[kept++] = i;
      continue;
    }
    samples[i].push_back(sums[i].time);
    sums[i] = Sum();
  }
  open.resize(kept);
}

void LayerSamples::closeCall() { close(/*update=*/false); }
void LayerSamples::closeStep() { close(/*update=*/true); }

const std::vector<Nanos> &LayerSamples::of(int32_t layer, Phase phase) const {
  return samples[index(layer, phase)];
}

std::string LayerSamples::toBytes() const {
  host::Packer packer;
  for (const std::vector<Nanos> &some : samples)
    packer.addAll(some);
  return std::move(packer.bytes);
}

LayerSamples LayerSamples::fromBytes(size_t layers, const std::string &bytes) {
  LayerSamples all(layers);
  host::Unpacker unpacker(bytes);
  for (std::vector<Nanos> &some : all.samples)
    some = unpacker.takeAll<Nanos>();
  return all;
}

static Nanos median(std::vector<Nanos> &values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Profile combineSamples(const Plan &plan,
                       const std::vector<const LayerSamples *> &ranks) {
  int32_t fewest = plan.roles.front().replicas;
  for (const Role &role : plan.roles)
    fewest = std::min(fewest, role.replicas);
  Profile profile;
  profile.samples = plan.training.microBatchSize() / fewest;
  profile.layers.resize(plan.layers.size());

  auto combine = [&](int32_t layer, Phase phase) -> Nanos {
    double sum = 0;
    int roles = 0;
    std::vector<Nanos> values;
    for (const Role &role : plan.roles) {
      values.clear();
      for (int32_t i = 0; i < role.replicas; ++i) {
        const std::vector<Nanos> &of =
            ranks[role.firstRank + i]->of(layer, phase);
        values.insert(values.end(), of.begin(), of.end());
      }
      if (values.empty())
        continue;
      double scale =
          phase == Phase::Update ? 1.0 : double(role.replicas) / fewest;
      sum += double(median(values)) * scale;
      ++roles;
    }
    return roles == 0 ? 0 : static_cast<Nanos>(std::llround(sum / roles));
  };
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    LayerTimes &times = profile.layers[i];
    times.forward = combine(i, Phase::Forward);
    times.inputGrad = combine(i, Phase::InputGrad);
    times.weightGrad = combine(i, Phase::WeightGrad);
    times.update = combine(i, Phase::Update);
  }
  return profile;
}

/// A name as a YAML key: plain when nothing in it could mean something else.
static std::string yamlKey(const std::string &name) {
  auto isPlain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  };
  static const char *const kWords[] = {"true", "false", "null", "yes", "no",
                                       "on",   "off",   "y",    "n"};
  std::string lower = name;
  for (char &c : lower)
    c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  bool plain = !name.empty() &&
               std::all_of(name.begin(), name.end(), isPlain) &&
               (lower[0] == '_' || (lower[0] >= 'a' && lower[0] <= 'z')) &&
               std::find(std::begin(kWords), std::end(kWords), lower) ==
                   std::end(kWords);
  if (plain)
    return name;
  std::string quoted = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string formatProfile(const Plan &plan, const Profile &profile) {
  std::string text = fmt::format("schema_version: 1\n"
                                 "profile:\n"
                                 "  device: host\n"
                                 "  samples: {}\n"
                                 "  layers:\n",
                                 profile.samples);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const LayerTimes &times = profile.layers[i];
    text += fmt::format("    {}: {{forward: {} ns, input_grad: {} ns, "
                        "weight_grad: {} ns, update: {} ns}}\n",
                        yamlKey(plan.layers[i].name), times.forward,
                        times.inputGrad, times.weightGrad, times.update);
  }
  return text;
}

} // namespace takt::rt
