//===- layer_gradients.cpp - one way of a micro-batch -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The graph of layers from the kernels forward, the sums that are due, and the
// sums that the kernels backward make.
//
//===----------------------------------------------------------------------===//
#include "layer_gradients.h"

#include "../channel_stage.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::proof {

namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

enum class Share : uint64_t { Layer = 1, Message, HandedOver, Unknown };

ShareSum share(Share kind, uint64_t a = 0, uint64_t b = 0) {
  uint64_t low = mix(mix(mix(uint64_t(kind)) + a) + b);
  return {mix(low ^ 0x9e3779b97f4a7c15u), low};
}

ShareSum shareOf(const Kernel &forward) {
  return share(Share::Layer, uint64_t(forward.layer), uint64_t(forward.kind));
}

ShareSum shareOf(const BufferKey &key) {
  return share(Share::Message, key.first, uint64_t(key.second));
}

} // namespace

RoleGradients::RoleGradients(const Program &program, size_t index)
    : program(program), plan(program.plan), role(plan.roles[index]),
      index(index) {
  for (size_t p = 0; p < role.params.size(); ++p) {
    paramOfWeight.insert({keyOf(role.params[p].weight), p});
    for (const BufferRef &grad : role.params[p].grads)
      if (role.pools[grad.pool].kind == PoolKind::Gradients)
        paramOfSum.insert({keyOf(grad), p});
  }
  for (const Procedure &procedure : role.procedures)
    for (const Kernel &kernel : procedure.kernels)
      for (size_t input : forwardFlow(kernel).inputs) {
        // Temporaries of different stages may lie in one place.
        const BufferRef &ref = kernel.operands[input];
        if (procedure.phase == Phase::Forward &&
            role.pools[ref.pool].kind != PoolKind::Workspace)
          readers[keyOf(ref)].insert(procedure.stage);
      }
}

LayerGradients::LayerGradients(RoleGradients &common, int32_t stage,
                               std::vector<uint16_t> procedures)
    : common(common), plan(common.plan), role(common.role), stage(stage),
      procedures(std::move(procedures)) {
  for (const Endpoint &end : role.channels) {
    const Channel &channel = plan.channels[end.target];
    bool sends = channel.srcRole == common.index;
    if (channel.kind == ChannelKind::Tie ||
        stageAtEnd(role, channel, sends) != stage)
      continue;
    bool activation = channel.kind == ChannelKind::Activation;
    (activation ? sends ? left : came
     : sends    ? sent
                : arriving)
        .insert(keyOf(end.buffer));
  }
}

void LayerGradients::fail(uint16_t procedure, const Kernel *kernel,
                          const std::string &text) {
  if (!failure)
    failure = common.program.kernelFailure(
        ProofRule::Completeness, common.index, procedure, kernel, text);
}

std::string LayerGradients::layerText(int32_t layer) const {
  return layer < 0 ? "no layer" : "layer " + quoted(plan.layers[layer].name);
}

void LayerGradients::eachKernel(
    const std::function<void(uint16_t, const Kernel &)> &visit) {
  for (uint16_t p : procedures)
    for (const Kernel &kernel : role.procedures[p].kernels)
      if (!failure)
        visit(p, kernel);
}

/// A layer has one kernel of a kind; sums and copies may be several, of
/// different buffers.
void LayerGradients::once(uint16_t procedure, const Kernel &kernel) {
  std::vector<BufferKey> operands;
  bool isForward = role.procedures[procedure].phase == Phase::Forward;
  bool ofLayer =
      isForward ? forwardFlow(kernel).known : backwardFlow(kernel.kind).known;
  if (!ofLayer || kernel.kind == KernelKind::Copy)
    for (const BufferRef &ref : kernel.operands)
      operands.push_back(keyOf(ref));
  if (!seen.insert({kernel.kind, kernel.phase, kernel.layer, operands}).second)
    fail(procedure, &kernel, "runs a second time for a micro-batch");
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// The tensor that a buffer holds; one of the stages before, if none of this.
/// Whether a gradient is sent for a tensor that came in among several.
bool LayerGradients::goesBack(const BufferKey &tensor) const {
  return came.count(tensor) > 0 &&
         std::any_of(sent.begin(), sent.end(), [&](const BufferKey &gradient) {
           return isGradientOf(gradient, tensor);
         });
}

size_t LayerGradients::tensorIn(const BufferRef &ref) {
  auto [entry, isNew] = current.insert({keyOf(ref), tensors.size()});
  if (isNew)
    tensors.push_back({keyOf(ref), true, goesBack(keyOf(ref)), false, {}, {}});
  return entry->second;
}

void LayerGradients::forward(uint16_t procedure, const Kernel &kernel) {
  Step step{procedure, &kernel, forwardFlow(kernel), {}, 0, false};
  if (!step.flow.known) {
    isOpaque = true;
    return;
  }
  for (size_t input : step.flow.inputs)
    step.inputs.push_back(tensorIn(kernel.operands[input]));
  step.output = tensors.size();
  BufferKey made = keyOf(kernel.operands[step.flow.output]);
  bool learns = std::any_of(
      kernel.operands.begin(), kernel.operands.end(), [&](const auto &ref) {
        auto param = common.paramOfWeight.find(keyOf(ref));
        return param != common.paramOfWeight.end() &&
               !role.params[param->second].grads.empty();
      });
  for (size_t input : step.inputs)
    learns |= tensors[input].learns;
  tensors.push_back({made, false, learns, false, {}, {}});
  current[made] = step.output;
  stepOf[{kernel.layer, kernel.kind}] = steps.size();
  steps.push_back(std::move(step));
}

/// Readers come after the kernel that makes a tensor: going back, all of them
/// are known.
void LayerGradients::findDue() {
  std::vector<size_t> leaving;
  for (const auto &[key, tensor] : current) {
    auto found = common.readers.find(key);
    bool isRead = found != common.readers.end() &&
                  (found->second.size() > 1 || !found->second.count(stage));
    if (tensors[tensor].outside || (!isRead && !left.count(key)))
      continue;
    left.insert(key);
    leaving.push_back(tensor);
  }
  for (size_t i : leaving) {
    Tensor &tensor = tensors[i];
    tensor.alive = true;
    if (arriving.empty())
      tensor.due.add(handedShare(tensor.buffer));
    bool comesBack = false;
    for (const BufferKey &arrival : arriving)
      if (left.size() == 1 || isGradientOf(arrival, tensor.buffer)) {
        tensor.due.add(shareOf(arrival));
        comesBack = true;
      }
    if (!arriving.empty() && !comesBack && tensor.learns)
      return fail(procedures.front(), nullptr,
                  fmt::format("makes what is sent from byte {} of pool {}, for "
                              "which no gradient comes back",
                              tensor.buffer.second,
                              quoted(role.pools[tensor.buffer.first].name)));
  }
  for (size_t i = steps.size(); i-- > 0;) {
    Step &step = steps[i];
    const Tensor output = tensors[step.output];
    step.isAlive = step.flow.isLoss || output.alive;
    common.hasDeadLayers |= !step.isAlive;
    for (size_t input : step.inputs) {
      if (!step.isAlive)
        continue;
      tensors[input].alive = true;
      tensors[input].readers.push_back(i);
      tensors[input].due.add(step.flow.handsOn ? output.due
                                               : shareOf(*step.kernel));
    }
  }
  for (const Tensor &tensor : tensors)
    if (tensor.outside)
      dueOutside[tensor.buffer] = tensor.due;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Of several tensors that leave, the offset says which gradient is whose.
ShareSum LayerGradients::handedShare(const BufferKey &key) const {
  return share(Share::HandedOver, left.size() > 1 ? uint64_t(key.second) : 0);
}

ShareSum LayerGradients::read(const BufferKey &key) {
  auto found = held.find(key);
  if (found != held.end())
    return found->second;
  if (arriving.count(key))
    return shareOf(key);
  if (!arriving.empty())
    return share(Share::Unknown);
  handedOver.insert(key);
  return handedShare(key);
}

/// The layers whose shares are due, the nearest first; those that hand it on
/// lead to others.
std::string LayerGradients::dueText(const Tensor &tensor) const {
  constexpr size_t kMost = 8;
  std::vector<const Tensor *> open{&tensor};
  std::vector<std::string> names;
  for (size_t i = 0; i < open.size() && names.size() <= kMost; ++i) {
    for (size_t reader : open[i]->readers) {
      names.push_back(layerText(steps[reader].kernel->layer));
      if (steps[reader].flow.handsOn)
        open.push_back(&tensors[steps[reader].output]);
    }
    if (!open[i]->outside && left.count(open[i]->buffer))
      names.push_back("the next stage");
  }
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i)
    text += (i > 0 ? ", " : " of ") + names[i];
  return "is not the sum of the shares" + text +
         (names.size() > kMost ? " and more" : "") + ", each once";
}

std::string LayerGradients::outsideText(const BufferKey &buffer) const {
  for (const Tensor &tensor : tensors)
    if (tensor.outside && tensor.buffer == buffer)
      return dueText(tensor);
  return "is due";
}

void LayerGradients::layerKernel(uint16_t procedure, const Kernel &kernel,
                                 const BackwardFlow &flow) {
  auto found = stepOf.find({kernel.layer, flow.forward});
  if (found == stepOf.end() && !isOpaque)
    return fail(procedure, &kernel,
                "is of a layer that the stage does not run "
                "forward");
  for (size_t i = 0; i < kernel.operands.size(); ++i)
    if (role.pools[kernel.operands[i].pool].kind == PoolKind::Gradients)
      addsTo(procedure, kernel, kernel.operands[i]);
  if (isOpaque || failure)
    return;
  const Step &step = steps[found->second];
  const Tensor &output = tensors[step.output];
  if (flow.taken != kNoOperand &&
      !(read(keyOf(kernel.operands[flow.taken])) == output.due)) {
    isVague = !step.isAlive;
    return fail(procedure, &kernel, "takes a gradient that " + dueText(output));
  }
  if (flow.made == kNoOperand)
    return;
  for (size_t i = flow.made + 1; i < kernel.operands.size(); ++i)
    held[keyOf(kernel.operands[i])] = share(Share::Unknown); // scratch
  held[keyOf(kernel.operands[flow.made])] = shareOf(*step.kernel);
}

void LayerGradients::backward(uint16_t procedure, const Kernel &kernel) {
  if (BackwardFlow flow = backwardFlow(kernel.kind); flow.known)
    return layerKernel(procedure, kernel, flow);
  auto buffer = [&](size_t i) { return keyOf(kernel.operands[i]); };
  ShareSum sum;
  switch (kernel.kind) {
  case KernelKind::Profiled:
    isOpaque = true;
    return;
  case KernelKind::Copy:
    held[buffer(1)] = read(buffer(0));
    return;
  case KernelKind::Accumulate:
    sum = read(buffer(0));
    sum.add(read(buffer(1)));
    held[buffer(1)] = sum;
    return;
  case KernelKind::AddForward:
    sum = read(buffer(0));
    sum.add(read(buffer(1)));
    held[buffer(2)] = sum;
    return;
  default:
    // No kernel backward: whatever it writes is no gradient.
    for (const BufferRef &ref : kernel.operands)
      held[keyOf(ref)] = share(Share::Unknown);
    return;
  }
}

/// An accumulator is one use of a parameter: one layer adds to it.
void LayerGradients::addsTo(uint16_t procedure, const Kernel &kernel,
                            const BufferRef &ref) {
  auto param = common.paramOfSum.find(keyOf(ref));
  if (param == common.paramOfSum.end())
    return; // refused with the parameters
  added[kernel.layer].insert(param->second);
  auto entry = common.adders.insert({keyOf(ref), {kernel.layer, stage}}).first;
  if (!sums.insert(keyOf(ref)).second ||
      entry->second != std::make_pair(kernel.layer, stage))
    fail(procedure, &kernel,
         "adds to a gradient to which " + layerText(entry->second.first) +
             " adds");
}

//===----------------------------------------------------------------------===//
// What must be there in the end
//===----------------------------------------------------------------------===//

/// A layer that reads a weight with accumulators adds to one of them.
void LayerGradients::checkWeights() {
  for (const Step &step : steps) {
    if (!step.isAlive && !isOpaque)
      continue;
    std::multiset<size_t> due;
    for (const BufferRef &ref : step.kernel->operands) {
      auto param = common.paramOfWeight.find(keyOf(ref));
      if (param != common.paramOfWeight.end() &&
          !role.params[param->second].grads.empty())
        due.insert(param->second);
    }
    if (added[step.kernel->layer] == due || due.empty())
      continue;
    return fail(procedures.back(), nullptr,
                fmt::format("{} does not add to the gradient of each of its "
                            "parameters once",
                            layerText(step.kernel->layer)));
  }
}

/// Layers known by costs only: a layer that hands a gradient on, or is updated,
/// learns. Which layers have an input to give a gradient to is not said, only
/// that it is the same in every way through the stage.
void LayerGradients::checkProfiled() {
  std::map<int32_t, uint16_t> weights;
  std::map<int32_t, uint16_t> due;
  eachKernel([&](uint16_t p, const Kernel &kernel) {
    if (kernel.kind != KernelKind::Profiled)
      return;
    if (kernel.phase == Phase::InputGrad) {
      profiledInputs.insert(kernel.layer);
      due[kernel.layer] = p;
    }
    if (kernel.phase == Phase::WeightGrad)
      weights[kernel.layer] = p;
  });
  for (const Procedure &procedure : role.procedures)
    for (const Kernel &kernel : procedure.kernels)
      if (procedure.stage == stage && kernel.kind == KernelKind::Profiled &&
          kernel.phase == Phase::Update)
        due.insert({kernel.layer, procedures.back()});
  for (const auto &[layer, p] : due)
    if (!weights.count(layer))
      return fail(p, nullptr, layerText(layer) + " lacks its weight gradient");
}

/// The gradient of what came in goes back whole.
void LayerGradients::checkSent() {
  auto sentFor = [&](const BufferKey &value) {
    return std::find_if(sent.begin(), sent.end(), [&](const BufferKey &key) {
      return isGradientOf(key, value) || came.size() == 1;
    });
  };
  for (const Tensor &tensor : tensors) {
    auto gradient = sentFor(tensor.buffer);
    if (tensor.outside && gradient != sent.end() && came.count(tensor.buffer) &&
        !(read(*gradient) == tensor.due))
      return fail(procedures.back(), nullptr,
                  "sends a gradient that " + dueText(tensor));
  }
}

std::optional<ProofFailure> LayerGradients::run() {
  const bool hasBackward =
      std::any_of(procedures.begin(), procedures.end(), [&](uint16_t p) {
        return role.procedures[p].phase != Phase::Forward;
      });
  eachKernel([&](uint16_t p, const Kernel &kernel) {
    once(p, kernel);
    if (!failure && role.procedures[p].phase == Phase::Forward)
      forward(p, kernel);
    isOpaque |= kernel.kind == KernelKind::Profiled;
  });
  if (failure)
    return failure;
  findDue();
  eachKernel([&](uint16_t p, const Kernel &kernel) {
    if (role.procedures[p].phase != Phase::Forward)
      backward(p, kernel);
  });
  if (!failure)
    checkWeights();
  if (!failure && isOpaque)
    checkProfiled();
  else if (!failure && hasBackward)
    checkSent();
  return failure;
}

} // namespace takt::rt::proof
