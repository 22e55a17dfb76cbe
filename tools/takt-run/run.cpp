//===- run.cpp - one run of a plan ----------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Puts together plan, data, weights and trainer, and runs the steps.
//
//===----------------------------------------------------------------------===//

#include "run.h"

#include "checkpointing.h"
#include "inference.h"
#include "log.h"
#include "member.h"
#include "outputs.h"
#include "recording.h"
#include "report.h"
#include "stop.h"
#include "weights.h"

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/units.h"
#include "takt-rt/data/source.h"
#include "takt-rt/host/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>

#include <unistd.h>

namespace takt::run {

using rt::Error;
using rt::ExitCode;

namespace {
constexpr int64_t kSteps = 100;
constexpr int64_t kProfileSteps = 20;
constexpr double kTimeout = 600; // seconds, of ranks that are threads

/// For runs without steps, which only move weights.
class NoSource : public rt::Source {
public:
  void fill(const rt::InputInfo &, int64_t, int64_t, void *) const override {
    throw Error("there is no data", ExitCode::Internal);
  }
};

std::unique_ptr<rt::Source> openSource(const RunOptions &options,
                                       const rt::Plan &plan, int64_t steps) {
  if (!options.data.empty())
    return rt::openText(plan, options.data);
  if (steps <= 0)
    return std::make_unique<NoSource>();
  if (rt::isTextModel(plan) && !options.synthetic)
    throw Error(fmt::format("model '{}' {} a text: name one with "
                            "'--data FILE' (any file of bytes will do), or "
                            "take random samples with '--synthetic'",
                            plan.model,
                            plan.training.mode == rt::Mode::Inference
                                ? "reads"
                                : "learns from"),
                ExitCode::Usage);
  return rt::syntheticSource(plan);
}

/// A log sets ends of lines itself.
std::string withoutEnd(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

/// A run in progress: the pieces that every step touches.
class Run {
public:
  explicit Run(const RunOptions &options);
  /// Does everything; of several processes this one's part.
  void run();

private:
  bool wantsPictures() const {
    return !options.trace.empty() || !options.timeline.empty();
  }
  /// This process reports and leaves the files.
  bool isFirst() const { return !identity || identity->rank == 0; }
  bool prove() const;
  void train();
  void dryRun();
  void load();
  void runSteps(rt::Trainer &trainer, Recording &recording);
  Share share();
  void leaveFiles(rt::Trainer &trainer);
  void warn(const std::string &text) const {
    if (isFirst())
      log().warn(text);
  }
  void say(const std::string &text) const {
    if (!options.quiet && !options.json && isFirst())
      std::cout << text << std::flush;
  }

  const RunOptions &options;
  rt::Plan plan;
  std::optional<rt::Identity> identity; ///< of one process of several
  std::unique_ptr<Member> member;
  bool proven;
  rt::Simulation predicted;
  rt::TensorMap weights;
  uint64_t planHash; ///< of the plan as it was read
  Checkpointing checkpoints;
  rt::GatherHere gatherHere; ///< of a process that has all ranks
  int64_t steps = 0;         ///< those before a checkpoint counted
  int64_t stepsDone = 0;     ///< likewise; fewer than steps after a signal
  TypicalStep typical;
};

rt::Plan planOf(const RunOptions &options) {
  rt::Plan plan = rt::readPlan(options.plan, rt::Reading::Structure);
  checkMode(options, plan);
  return plan;
}

Run::Run(const RunOptions &options)
    : options(options), plan(planOf(options)),
      identity(identityFor(options, plan)), proven(prove()),
      planHash(rt::planHash(plan)),
      checkpoints(options, plan, planHash,
                  {[this](const std::string &text) {
                     log().debug(rt::LogTopic::Checkpoint, withoutEnd(text));
                     say(text);
                   },
                   [this](const std::string &text) { warn(text); }}) {
  steps =
      options.steps.value_or(options.profile.empty() ? kSteps : kProfileSteps);
  stepsDone = checkpoints.firstStep();
  int64_t toRun = std::max(int64_t(0), steps - stepsDone);
  if (!options.profile.empty() && toRun <= kWarmUpSteps)
    throw Error(fmt::format("'--profile' leaves out {} steps: run more than "
                            "that",
                            kWarmUpSteps),
                ExitCode::Usage);
  if (!options.dumpGradients.empty() && toRun == 0)
    throw Error("'--dump-gradients' needs a step", ExitCode::Usage);
}

/// The whole proof takes little beside a run, so a certificate alone is not
/// relied upon.
bool Run::prove() const {
  rt::Proof proof = rt::prove(plan);
  if (!options.unproven)
    rt::requireProof(proof, options.plan);
  if (!proof.holds())
    log().warn(fmt::format("UNPROVEN PLAN: {}: it may hang, or train on wrong "
                           "data",
                           rt::proofText(proof)));
  return proof.holds();
}

void Run::load() {
  if (!options.loadWeights.empty())
    weights = loadWeights(options, plan,
                          {[this](const std::string &text) { say(text); },
                           [this](const std::string &text) { warn(text); }});
}

void Run::dryRun() {
  if (options.dryRun == "cuda")
    throw Error("this takt-run was built without cuda: '--dry-run=host' is "
                "what it can do",
                ExitCode::DoesNotFit);
  if (!isFirst())
    return;
  Report report(plan, predicted.makespan);
  if (options.json)
    std::cout << report.json();
  say(fmt::format("dry run: {} instructions, predicted step {:.3f} ms\n",
                  predicted.records.size(), double(predicted.makespan) * 1e-6));
  rt::Runs runs;
  runs.predicted = std::move(predicted.records);
  writePictures(options, plan, runs);
}

/// Training, and what becomes of the other processes when it fails.
void Run::run() {
  if (!identity || !options.dryRun.empty())
    return train();
  try {
    member = std::make_unique<Member>(options, plan, *identity,
                                      checkpoints.firstStep());
  } catch (const rt::RankFailed &error) {
    throw inShort(*identity, error.rank(), error);
  }
  try {
    train();
    member->leave();
  } catch (const Error &error) {
    member->fail(error);
  } catch (const std::bad_alloc &) {
    member->fail(Error("out of memory", ExitCode::DoesNotFit));
  } catch (const std::exception &error) {
    member->fail(Error(error.what(), ExitCode::Internal));
  }
}

/// What this process has of the run; of several, once it is connected.
Share Run::share() {
  if (member)
    return member->share();
  std::vector<int32_t> ranks(plan.numRanks());
  std::iota(ranks.begin(), ranks.end(), 0);
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return {ranks, &gatherHere,
          fmt::format("{:x}-{}", now / std::chrono::nanoseconds(1), getpid())};
}

void Run::train() {
  if (isFirst())
    checkOutputs(options);
  // A plan that cannot run to its end has no predicted time.
  if (proven)
    predicted = rt::simulate(plan);
  say(rt::printText(rt::summarize(plan)));
  if (!options.dryRun.empty())
    return dryRun();
  load();
  std::unique_ptr<rt::Source> source =
      checkpoints.place(openSource(options, plan, steps - stepsDone));
  if (plan.training.mode == rt::Mode::Inference)
    steps = stepsOf(options, plan, *source, steps,
                    [this](const std::string &text) { warn(text); });
  rt::TrainerOptions trainerOptions;
  trainerOptions.weights = options.loadWeights.empty() ? nullptr : &weights;
  trainerOptions.timeoutSeconds = options.timeoutSeconds.value_or(kTimeout);
  trainerOptions.emulateLinks = options.emulateLinks;
  trainerOptions.stopWanted = StopOnSignal::wanted;
  trainerOptions.trace = wantsPictures();
  trainerOptions.keepGradients = !options.dumpGradients.empty();
  trainerOptions.keepOutputs = !options.outputs.empty();
  checkpoints.prepare(trainerOptions);
  if (member) {
    member->connect(plan, predicted.makespan);
    trainerOptions.seats = &member->seats();
  }
  Share own = share();
  double patience =
      member ? member->patienceSeconds() : trainerOptions.timeoutSeconds;
  Recording recording(options, plan, planHash, own, rt::Nanos(patience * 1e9),
                      predicted.makespan);
  rt::Trainer trainer(plan, *source, trainerOptions);
  weights.clear();
  recording.begin(trainer);
  try {
    checkpoints.begin(trainer, *source, own);
    runSteps(trainer, recording);
    leaveFiles(trainer);
    checkpoints.finish();
  } catch (const Error &error) {
    recording.failed(int(error.code()), error.what());
    if (!member)
      throw;
    // Of a lost connection only the others can say whose it was.
    Error verdict = member->verdict(error);
    recording.failed(int(verdict.code()), verdict.what());
    throw verdict;
  } catch (const std::exception &error) {
    recording.failed(int(ExitCode::Internal), error.what());
    throw;
  }
  recording.ended();
  flushStandardOutput(); // last: a closed pipe must not cost the weights
}

void Run::runSteps(rt::Trainer &trainer, Recording &recording) {
  const int64_t first = stepsDone;
  Report report(plan, predicted.makespan, first);
  LossLog losses(isFirst() ? options.logLosses : "");
  OutputFile outputs(isFirst() ? options.outputs : "", plan);
  if (first > 0 && first >= steps)
    say(fmt::format("the checkpoint is of step {}: up to step {} there is "
                    "nothing to do\n",
                    first, steps));
  say("\n" + report.header());
  StopOnSignal stop;
  bool stopped = false;
  while (stepsDone < steps && !stopped) {
    if (stepsDone == first + kWarmUpSteps && !options.profile.empty())
      trainer.setProfiling(true);
    rt::StepResult result = trainer.step();
    ++stepsDone;
    stopped = result.stop;
    log().debug(rt::LogTopic::Run, fmt::format("step {} in {}", stepsDone,
                                               rt::formatNanos(result.time)));
    report.add(result);
    losses.add(result.loss);
    outputs.add(result.outputs);
    say(report.lastLine());
    if (stepsDone == first + 1 && !options.dumpGradients.empty()) {
      rt::TensorMap gradients = trainer.gradients();
      if (isFirst())
        rt::writeSafetensors(options.dumpGradients, gradients,
                             {{"content", "gradients of step 1"}});
    }
    if (wantsPictures())
      typical.add(std::move(result));
    recording.stepDone(stepsDone);
    checkpoints.stepDone(stepsDone, stopped || stepsDone == steps);
  }
  if (stopped && isFirst())
    log().add(rt::LogLevel::Warn, rt::LogTopic::Run,
              "stopped by a signal after the step under way");
  outputs.finish();
  say(report.closing());
  if (options.json && isFirst())
    std::cout << report.json();
}

void Run::leaveFiles(rt::Trainer &trainer) {
  rt::TensorMap last;
  rt::Profile profile;
  if (!options.saveWeights.empty())
    last = trainer.weights();
  if (!options.profile.empty())
    profile = trainer.profile();
  if (!isFirst())
    return;
  if (!options.saveWeights.empty())
    rt::writeSafetensors(
        options.saveWeights, last,
        {{"model", plan.model}, {"steps", std::to_string(stepsDone)}});
  if (!options.profile.empty())
    rt::writeFile(options.profile, rt::formatProfile(plan, profile));
  rt::Runs runs;
  runs.predicted = std::move(predicted.records);
  runs.measured = typical.records();
  writePictures(options, plan, runs);
}
} // namespace

void run(const RunOptions &options) { Run(options).run(); }

} // namespace takt::run
