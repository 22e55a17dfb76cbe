//===- trainer.cpp - all ranks of a plan as threads -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Parameters into the arenas and out of them, losses out of them; the threads
// are the crew's.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/trainer.h"

#include "crew.h"

#include "takt-rt/core/error.h"
#include "takt-rt/data/init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace takt::rt {

class Trainer::Impl {
public:
  Impl(const Plan &plan, const Source &source, const TrainerOptions &options);

  StepResult step();
  TensorMap weights();

  const Plan &plan;
  bool trace;
  bool keepGradients;
  int64_t firstStep;
  host::Crew crew;
  /// By rank: replicas hold equal sums, so the first of each role has a sink.
  std::vector<TensorMap> gradients;

private:
  void place(const TensorMap *weights);
  double loss();

  int64_t nextStep;
};

static const Plan &checked(const Plan &plan) {
  checkFitsHost(plan);
  return plan;
}

Trainer::Impl::Impl(const Plan &plan, const Source &source,
                    const TrainerOptions &options)
    : plan(plan), trace(options.trace), keepGradients(options.keepGradients),
      firstStep(options.firstStep),
      crew(checked(plan), source, options.timeoutSeconds),
      gradients(plan.numRanks()), nextStep(options.firstStep) {
  if (!options.leaveUnset)
    place(options.weights);
  for (int32_t r = 0; r < crew.size(); ++r)
    crew.device(r).setTracing(trace);
  if (keepGradients)
    for (const Role &role : plan.roles)
      crew.device(role.firstRank).setGradientSink(&gradients[role.firstRank]);
}

/// Draws or copies each parameter once and puts it wherever it is used.
void Trainer::Impl::place(const TensorMap *weights) {
  for (size_t p = 0; p < plan.params.size(); ++p) {
    const Param &param = plan.params[p];
    std::vector<float> drawn;
    const std::vector<float> *values = &drawn;
    auto given =
        weights ? weights->find(param.name) : TensorMap::const_iterator();
    if (weights && given != weights->end()) {
      if (given->second.shape != param.shape)
        throw Error(fmt::format("parameter '{}' has the shape [{}], not [{}]",
                                param.name, fmt::join(param.shape, ", "),
                                fmt::join(given->second.shape, ", ")));
      values = &given->second.values;
    } else {
      drawn = initParam(param, plan.training.seed);
    }
    for (const Role &role : plan.roles)
      for (const RoleParam &use : role.params)
        if (use.param == int32_t(p))
          for (int32_t i = 0; i < role.replicas; ++i)
            std::copy(values->begin(), values->end(),
                      crew.device(role.firstRank + i).elements(use.weight));
  }
}

double Trainer::Impl::loss() {
  double sum = 0;
  for (const Role &role : plan.roles) {
    if (!role.hasLoss)
      continue;
    auto pool =
        std::find_if(role.pools.begin(), role.pools.end(),
                     [](const Pool &p) { return p.kind == PoolKind::Loss; });
    if (pool == role.pools.end())
      continue;
    BufferRef ref;
    ref.pool = static_cast<uint16_t>(pool - role.pools.begin());
    for (int32_t m = 0; m < plan.training.microBatches; ++m)
      for (int32_t i = 0; i < role.replicas; ++i)
        sum += *crew.device(role.firstRank + i).elements(ref, m);
  }
  return sum;
}

StepResult Trainer::Impl::step() {
  StepResult result;
  result.step = nextStep;
  result.time = crew.runStep(nextStep++);
  result.loss = loss();
  for (int32_t r = 0; trace && r < crew.size(); ++r) {
    const std::vector<Record> &records = crew.device(r).records();
    result.records.insert(result.records.end(), records.begin(), records.end());
  }
  if (keepGradients && result.step == firstStep)
    for (int32_t r = 0; r < crew.size(); ++r)
      crew.device(r).setGradientSink(nullptr);
  return result;
}

TensorMap Trainer::Impl::weights() {
  TensorMap tensors;
  for (const Role &role : plan.roles)
    for (const RoleParam &use : role.params) {
      const Param &param = plan.params[use.param];
      const float *first = crew.device(role.firstRank).elements(use.weight);
      tensors.emplace(
          param.name,
          Tensor{param.shape,
                 std::vector<float>(first, first + elementCount(param.shape))});
    }
  return tensors;
}

//===----------------------------------------------------------------------===//
// The public face
//===----------------------------------------------------------------------===//

Trainer::Trainer(const Plan &plan, const Source &source,
                 const TrainerOptions &options)
    : impl(std::make_unique<Impl>(plan, source, options)) {}

Trainer::~Trainer() = default;

StepResult Trainer::step() { return impl->step(); }

float *Trainer::state(int32_t rank, const BufferRef &ref) {
  return impl->crew.device(rank).elements(ref);
}

TensorMap Trainer::weights() const { return impl->weights(); }

TensorMap Trainer::gradients() const {
  TensorMap all;
  for (const TensorMap &ofRank : impl->gradients)
    all.insert(ofRank.begin(), ofRank.end());
  return all;
}

void Trainer::setProfiling(bool on) {
  for (int32_t r = 0; r < impl->crew.size(); ++r)
    impl->crew.device(r).setProfiling(on);
}

Profile Trainer::profile() const {
  std::vector<const LayerSamples *> ranks;
  for (int32_t r = 0; r < impl->crew.size(); ++r)
    ranks.push_back(&impl->crew.device(r).samples());
  return combineSamples(impl->plan, ranks);
}

std::vector<std::string> checkWeights(const Plan &plan,
                                      const TensorMap &tensors,
                                      const std::string &file) {
  std::set<std::string> known;
  for (const Param &param : plan.params) {
    auto tensor = tensors.find(param.name);
    if (tensor == tensors.end())
      throw Error(fmt::format("'{}' lacks parameter '{}' of model '{}'", file,
                              param.name, plan.model));
    if (tensor->second.shape != param.shape)
      throw Error(fmt::format("'{}': parameter '{}' has the shape [{}] where "
                              "model '{}' has [{}]",
                              file, param.name,
                              fmt::join(tensor->second.shape, ", "), plan.model,
                              fmt::join(param.shape, ", ")));
    known.insert(param.name);
  }
  std::vector<std::string> unknown;
  for (const auto &[name, tensor] : tensors)
    if (known.count(name) == 0)
      unknown.push_back(name);
  return unknown;
}

} // namespace takt::rt
