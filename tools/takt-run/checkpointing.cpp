//===- checkpointing.cpp - checkpoints of a run ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A checkpoint that fails costs a warning and not the run: training goes on,
// and only a run whose last state is on no disk ends with an error.
//
//===----------------------------------------------------------------------===//

#include "checkpointing.h"

#include "takt-rt/checkpoint/restore.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

namespace takt::run {

using rt::Error;

Checkpointing::Checkpointing(const RunOptions &options, rt::Plan &plan,
                             uint64_t planHash, Voice voice)
    : options(options), plan(plan), voice(std::move(voice)),
      planHash(rt::planHashText(planHash)) {
  if (!options.resume.empty())
    resume();
  if (options.seed)
    plan.training.seed = *options.seed;
}

//===----------------------------------------------------------------------===//
// Going on
//===----------------------------------------------------------------------===//

static bool isEmpty(const std::string &folder) {
  std::error_code none;
  return rt::listCheckpoints(folder).empty() &&
         !std::filesystem::exists(
             std::filesystem::path(folder) / rt::kManifestFile, none);
}

/// A job script can always name its folder: the first time there is nothing in
/// it.
static bool isFirstRun(const RunOptions &options) {
  auto whole = [](const std::string &path) {
    std::error_code none; // of a folder that is not there
    return std::filesystem::weakly_canonical(path, none).lexically_normal();
  };
  return !options.checkpoint.empty() &&
         whole(options.checkpoint) == whole(options.resume) &&
         rt::listCheckpoints(options.resume).empty();
}

/// The checkpoint to go on from. A run that saves elsewhere never begins anew:
/// a wrong name would cost the training.
static rt::FoundCheckpoint findCheckpoint(const RunOptions &options) {
  try {
    return rt::findCheckpoint(options.resume);
  } catch (const Error &error) {
    if (options.checkpoint.empty() || !isEmpty(options.resume))
      throw;
    throw Error(fmt::format("{}; training begins at its first step only where "
                            "'--checkpoint' names the same folder, and that is "
                            "'{}'",
                            error.what(), options.checkpoint),
                error.code());
  }
}

void Checkpointing::resume() {
  if (isFirstRun(options))
    return voice.say(
        fmt::format("no checkpoint in '{}' yet: training begins at its "
                    "first step\n",
                    options.resume));
  rt::FoundCheckpoint found = findCheckpoint(options);
  for (const auto &[path, why] : found.passedOver)
    voice.warn(fmt::format("checkpoint '{}' is passed over: {}", path, why));
  resumed = std::move(found.checkpoint);
  rt::CheckpointFit fit = rt::compare(*resumed, plan, planHash);
  rt::requireFit(fit, *resumed, plan);
  const rt::Manifest &manifest = resumed->manifest;
  voice.say(fmt::format("going on from '{}': step {}, {} samples, {}\n",
                        resumed->path, manifest.step, manifest.samples,
                        fit.samePlan ? "the same plan" : "another plan"));
  for (const std::string &change : fit.changes)
    voice.warn(change);
  uint64_t seed = manifest.training.seed;
  if (options.seed && *options.seed != seed)
    voice.warn(fmt::format("the seed was {} and is {}", seed, *options.seed));
  plan.training.seed = seed;
}

int64_t Checkpointing::samplesAfter(int64_t steps) const {
  int64_t before = resumed ? resumed->manifest.samples : 0;
  return before + (steps - firstStep()) * plan.training.globalBatch;
}

std::unique_ptr<rt::Source>
Checkpointing::place(std::unique_ptr<rt::Source> source) const {
  if (!resumed)
    return source;
  int64_t counted = 0, shift = 0;
  if (__builtin_mul_overflow(firstStep(), plan.training.globalBatch,
                             &counted) ||
      __builtin_sub_overflow(resumed->manifest.samples, counted, &shift))
    throw Error(fmt::format("checkpoint '{}' goes on at sample {} of step {}, "
                            "beyond what can be counted",
                            resumed->path, resumed->manifest.samples,
                            firstStep()));
  return shift == 0 ? std::move(source)
                    : rt::shiftedSource(std::move(source), shift);
}

void Checkpointing::prepare(rt::TrainerOptions &trainer) const {
  trainer.firstStep = firstStep();
  trainer.leaveUnset = resumed.has_value();
}

void Checkpointing::begin(rt::Trainer &trainer, const rt::Source &source,
                          const Share &share) {
  data = source.describe();
  rt::StateMemory memory = [&trainer](int32_t rank, const rt::BufferRef &ref) {
    return trainer.state(rank, ref);
  };
  if (resumed) {
    const std::string &before = resumed->manifest.data;
    if (!before.empty() && !data.empty() && before != data)
      voice.warn(fmt::format("the data was a {} and is a {}", before, data));
    for (int32_t rank : share.ranks)
      rt::loadRank(*resumed, plan, rank, memory);
  }
  if (options.checkpoint.empty())
    return;
  // A limit on file sizes is an error on the file, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  rt::CheckpointOptions writing;
  writing.folder = options.checkpoint;
  writing.keep = options.keep;
  writing.writer = "takt-run " TAKT_VERSION;
  writing.run = share.run;
  writing.ranks = share.ranks;
  writing.startStep = firstStep();
  writer = std::make_unique<rt::CheckpointWriter>(plan, writing, memory,
                                                  *share.gather);
}

//===----------------------------------------------------------------------===//
// Saving
//===----------------------------------------------------------------------===//

void Checkpointing::report() {
  for (const rt::CheckpointOutcome &outcome : writer->outcomes()) {
    lastError = outcome.error;
    failedRank = outcome.failedRank;
    if (!outcome.warning.empty())
      voice.warn(outcome.warning);
    if (!outcome.error.empty()) {
      voice.warn(fmt::format("no checkpoint of step {}: {}", outcome.step,
                             outcome.error));
      continue;
    }
    voice.say(fmt::format("checkpoint '{}': {} in {}\n", outcome.path,
                          rt::formatBytes(outcome.bytes),
                          rt::formatNanos(outcome.time)));
  }
}

void Checkpointing::stepDone(int64_t steps, bool isLast) {
  if (!writer)
    return;
  if (isLast || steps % options.checkpointEvery == 0) {
    rt::Manifest manifest = rt::manifestOf(plan, planHash);
    manifest.step = steps;
    manifest.samples = samplesAfter(steps);
    manifest.data = data;
    writer->save(std::move(manifest));
  }
  report();
}

void Checkpointing::finish() {
  if (!writer)
    return;
  writer->wait();
  report();
  if (lastError.empty())
    return;
  auto all = rt::listCheckpoints(options.checkpoint);
  throw Error(
      fmt::format("the last checkpoint could not be written: {}; {}", lastError,
                  all.empty()
                      ? "there is none"
                      : fmt::format("the newest is '{}'", all.back().second)),
      failedRank < 0 ? rt::ExitCode::BadInput : rt::ExitCode::PeerFailed);
}

} // namespace takt::run
