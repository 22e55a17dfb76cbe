//===- trainer.cpp - training from a plan ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Parameters into the arenas and out of them, losses out of them; the threads
// are the crew's. What ranks of other processes have comes through the team.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/trainer.h"

#include "crew.h"
#include "pack.h"

#include "takt-rt/core/error.h"
#include "takt-rt/data/init.h"
#include "takt-rt/transport/threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace takt::rt {

/// A process that has all ranks, as threads.
struct AllHere {
  AllHere(const Plan &plan, double timeoutSeconds)
      : exchange(plan), patience(timeoutSeconds) {
    seats.exchange = &exchange;
    seats.team = &team;
    seats.interrupt = &interrupt;
    seats.patience = &patience;
    for (int32_t r = 0; r < plan.numRanks(); ++r)
      seats.ranks.push_back(r);
    seats.nodeRanks = seats.ranks;
  }

  ThreadExchange exchange;
  TeamOfOne team;
  Interrupt interrupt;
  Patience patience;
  Seats seats;
};

class Trainer::Impl {
public:
  Impl(const Plan &plan, const Source &source, const TrainerOptions &options);

  StepResult step();
  TensorMap weights();
  TensorMap gradients();
  Profile profile();
  void forEachDevice(const std::function<void(HostDevice &)> &what);
  float *elements(int32_t rank, const BufferRef &ref) {
    return crew.device(rank)->elements(ref);
  }
  const std::vector<std::unique_ptr<host::Worker>> &workers() const {
    return crew.workers();
  }

private:
  void place(const TensorMap *weights);
  TensorMap tensorsOfAll(const TensorMap &ofThisProcess);
  std::vector<float> lossesOf(int32_t rank);
  void keepOutputs();
  void putOutputs(int32_t rank, const std::vector<float> &outputs,
                  StepResult &result);
  std::string shareOf(Nanos time);
  void combine(const std::vector<std::string> &shares, StepResult &result);

  const Plan &plan;
  bool trace;
  bool keepGradients;
  std::function<bool()> stopWanted;
  std::unique_ptr<AllHere> allHere; ///< without seats
  const Seats &seats;
  host::Crew crew;
  /// By rank: replicas hold equal sums, so the first of each role has a sink.
  std::vector<TensorMap> ownGradients;
  std::vector<std::vector<float>> ownOutputs; ///< by rank
  int64_t firstStep;
  int64_t nextStep;
};

static const Plan &checked(const Plan &plan,
                           const std::vector<int32_t> &ranksHere) {
  checkFitsHost(plan, ranksHere);
  return plan;
}

Trainer::Impl::Impl(const Plan &plan, const Source &source,
                    const TrainerOptions &options)
    : plan(plan), trace(options.trace), keepGradients(options.keepGradients),
      stopWanted(options.stopWanted),
      allHere(options.seats
                  ? nullptr
                  : std::make_unique<AllHere>(plan, options.timeoutSeconds)),
      seats(allHere ? allHere->seats : *options.seats),
      crew(checked(plan, seats.nodeRanks), source, *seats.exchange, seats.ranks,
           *seats.interrupt, *seats.patience),
      ownGradients(plan.numRanks()), ownOutputs(plan.numRanks()),
      firstStep(options.firstStep), nextStep(options.firstStep) {
  if (options.emulateLinks)
    seats.exchange->emulateLinks(plan);
  if (!options.leaveUnset)
    place(options.weights);
  forEachDevice([&](HostDevice &device) { device.setTracing(trace); });
  for (const Role &role : plan.roles)
    if (HostDevice *device = crew.device(role.firstRank);
        keepGradients && device)
      device->setGradientSink(&ownGradients[role.firstRank]);
  if (options.keepOutputs)
    keepOutputs();
}

void Trainer::Impl::keepOutputs() {
  for (const Role &role : plan.roles)
    for (int32_t i = 0; role.result.bytes > 0 && i < role.replicas; ++i)
      if (HostDevice *device = crew.device(role.firstRank + i)) {
        std::vector<float> &own = ownOutputs[role.firstRank + i];
        own.resize(size_t(role.result.bytes) / sizeof(float) *
                   plan.training.microBatches);
        device->setOutputSink(&own);
      }
}

void Trainer::Impl::forEachDevice(
    const std::function<void(HostDevice &)> &what) {
  for (const std::unique_ptr<host::Worker> &worker : crew.workers())
    what(worker->device());
}

/// Draws or copies each parameter once and puts it wherever it is used.
void Trainer::Impl::place(const TensorMap *weights) {
  for (size_t p = 0; p < plan.params.size(); ++p) {
    const Param &param = plan.params[p];
    std::vector<float *> uses;
    for (const Role &role : plan.roles)
      for (const RoleParam &use : role.params)
        for (int32_t i = 0; use.param == int32_t(p) && i < role.replicas; ++i)
          if (HostDevice *device = crew.device(role.firstRank + i))
            uses.push_back(device->elements(use.weight));
    if (uses.empty())
      continue;
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
    for (float *use : uses)
      std::copy(values->begin(), values->end(), use);
  }
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// The losses of a rank by micro-batch; empty if its role has none.
std::vector<float> Trainer::Impl::lossesOf(int32_t rank) {
  const Role &role = plan.roles[plan.roleOf(rank)];
  std::vector<float> losses;
  auto pool =
      std::find_if(role.pools.begin(), role.pools.end(),
                   [](const Pool &p) { return p.kind == PoolKind::Loss; });
  if (!role.hasLoss || pool == role.pools.end())
    return losses;
  BufferRef ref;
  ref.pool = static_cast<uint16_t>(pool - role.pools.begin());
  for (int32_t m = 0; m < plan.training.microBatches; ++m)
    losses.push_back(*crew.device(rank)->elements(ref, m));
  return losses;
}

/// What this process has of a step.
std::string Trainer::Impl::shareOf(Nanos time) {
  host::Packer packer;
  packer.add(time);
  packer.add(uint8_t(stopWanted && stopWanted()));
  for (int32_t rank : seats.ranks) {
    packer.addAll(lossesOf(rank));
    packer.addAll(crew.device(rank)->records());
    packer.addAll(ownOutputs[rank]);
  }
  return std::move(packer.bytes);
}

/// Replica i has its part of the samples of each micro-batch.
void Trainer::Impl::putOutputs(int32_t rank, const std::vector<float> &outputs,
                               StepResult &result) {
  if (outputs.empty())
    return;
  const Role &role = plan.roles[plan.roleOf(rank)];
  const int64_t replica = rank - role.firstRank, replicas = role.replicas;
  const int64_t share = role.result.bytes / Bytes(sizeof(float));
  result.outputs.resize(share * replicas * plan.training.microBatches);
  for (int64_t m = 0; m < plan.training.microBatches; ++m)
    std::copy_n(outputs.begin() + m * share, share,
                result.outputs.begin() + (m * replicas + replica) * share);
}

/// Rank 0: the step as a whole, from the shares of all processes.
void Trainer::Impl::combine(const std::vector<std::string> &shares,
                            StepResult &result) {
  std::vector<std::vector<float>> losses; // by rank
  for (const std::string &share : shares) {
    host::Unpacker unpacker(share);
    result.time = std::max(result.time, unpacker.take<Nanos>());
    result.stop |= unpacker.take<uint8_t>() != 0;
    while (!unpacker.atEnd()) {
      losses.push_back(unpacker.takeAll<float>());
      std::vector<Record> records = unpacker.takeAll<Record>();
      result.records.insert(result.records.end(), records.begin(),
                            records.end());
      putOutputs(int32_t(losses.size()) - 1, unpacker.takeAll<float>(), result);
    }
  }
  losses.resize(plan.numRanks());
  for (const Role &role : plan.roles)
    for (int32_t m = 0; m < plan.training.microBatches; ++m)
      for (int32_t i = 0; i < role.replicas; ++i)
        if (const auto &ofRank = losses[role.firstRank + i];
            size_t(m) < ofRank.size())
          result.loss += ofRank[m];
}

StepResult Trainer::Impl::step() {
  StepResult result;
  result.step = nextStep;
  Nanos time = crew.runStep(nextStep++);
  std::vector<std::string> shares = seats.team->gather(shareOf(time));
  host::Packer packer;
  if (seats.team->rank() == 0) {
    combine(shares, result);
    packer.add(result.loss);
    packer.add(result.time);
    packer.add(result.stop);
  }
  std::string agreed = seats.team->broadcast(packer.bytes);
  host::Unpacker unpacker(agreed);
  result.loss = unpacker.take<double>();
  result.time = unpacker.take<Nanos>();
  result.stop = unpacker.take<bool>();
  seats.patience->sawStep(result.time);
  if (keepGradients && result.step == firstStep)
    forEachDevice([](HostDevice &device) { device.setGradientSink(nullptr); });
  return result;
}

//===----------------------------------------------------------------------===//
// Tensors and times of all ranks
//===----------------------------------------------------------------------===//

TensorMap Trainer::Impl::tensorsOfAll(const TensorMap &ofThisProcess) {
  if (seats.team->size() == 1)
    return ofThisProcess;
  TensorMap all;
  std::vector<std::string> shares =
      seats.team->gather(formatSafetensors(ofThisProcess));
  for (size_t r = 0; r < shares.size(); ++r)
    all.merge(parseSafetensors(shares[r], fmt::format("rank {}", r)));
  return all;
}

TensorMap Trainer::Impl::weights() {
  TensorMap tensors;
  for (const Role &role : plan.roles) {
    HostDevice *device = crew.device(role.firstRank);
    for (size_t i = 0; device && i < role.params.size(); ++i) {
      const Param &param = plan.params[role.params[i].param];
      const float *first = device->elements(role.params[i].weight);
      tensors.emplace(
          param.name,
          Tensor{param.shape,
                 std::vector<float>(first, first + elementCount(param.shape))});
    }
  }
  return tensorsOfAll(tensors);
}

TensorMap Trainer::Impl::gradients() {
  TensorMap tensors;
  for (const TensorMap &ofRank : ownGradients)
    tensors.insert(ofRank.begin(), ofRank.end());
  return tensorsOfAll(tensors);
}

Profile Trainer::Impl::profile() {
  std::vector<LayerSamples> all;
  if (seats.team->size() == 1) {
    for (int32_t rank : seats.ranks)
      all.push_back(crew.device(rank)->samples());
  } else {
    // A process of several has one rank.
    for (const std::string &bytes : seats.team->gather(
             crew.device(seats.ranks.front())->samples().toBytes()))
      all.push_back(LayerSamples::fromBytes(plan.layers.size(), bytes));
  }
  std::vector<const LayerSamples *> ranks;
  for (const LayerSamples &samples : all)
    ranks.push_back(&samples);
  return ranks.empty() ? Profile() : combineSamples(plan, ranks);
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
  return impl->elements(rank, ref);
}

void Trainer::observe(int32_t rank, RankObserver *observer) {
  for (const std::unique_ptr<host::Worker> &worker : impl->workers())
    if (worker->rank() == rank)
      worker->observe(observer);
}

TensorMap Trainer::weights() const { return impl->weights(); }

TensorMap Trainer::gradients() const { return impl->gradients(); }

void Trainer::setProfiling(bool on) {
  impl->forEachDevice([on](HostDevice &device) { device.setProfiling(on); });
}

Profile Trainer::profile() const { return impl->profile(); }

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
