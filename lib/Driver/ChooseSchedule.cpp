//===- ChooseSchedule.cpp - --schedule=auto -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Compiles the model under every family that can lay out its stages and takes the
// plan with the shortest predicted step; of equal steps the one with the least
// memory, then the family that was published first. What does not fit the memory
// is no candidate, and neither is what changes what training computes.
//
// The number of ranks is free unless '--stages' or '--cuts' are given: 1F1B is
// tried on every number that divides the devices, and the families on the best of
// them and on the second, if that is nearly as good; on the others in turn where no
// family has a plan on these.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "takt/Frontend/Read.h"
#include "takt/Schedule/Pipeline.h"
#include "takt/Support/Quantity.h"
#include "takt/Support/Search.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

using namespace takt;
using nlohmann::ordered_json;
using rt::ExitCode;

namespace {

/// More stages a rank than this are not tried: each adds messages, and memory of
/// its ends.
constexpr int32_t kMostChunks = 4;

struct Candidate {
  std::string schedule;
  int64_t ranks = 0, chunks = 1;
  CompileOutcome outcome;

  int64_t stages() const { return ranks * chunks; }
  bool hasPlan() const { return outcome.code == int(ExitCode::Done); }
  Nanos step() const { return outcome.report.at("step_time_ns").get<Nanos>(); }
  int64_t peak() const {
    int64_t most = 0;
    for (const ordered_json &bytes : outcome.report.at("peak_bytes"))
      most = std::max(most, bytes.get<int64_t>());
    return most;
  }
};

bool better(const Candidate &a, const Candidate &b) {
  return std::make_pair(a.step(), a.peak()) <
         std::make_pair(b.step(), b.peak());
}

void evaluate(const CompileOptions &options, Candidate &candidate) {
  CompileOptions one = options;
  one.schedule = candidate.schedule;
  one.stages = candidate.stages();
  one.maxStages = 0;
  one.chunks = candidate.chunks;
  one.dumpLevels.clear();
  one.dumpSmt2.clear();
  one.explainStages = one.explainComm = false;
  candidate.outcome = compileForReport(one);
}

/// The first line of what was said, without its place.
std::string reasonOf(const CompileOutcome &outcome) {
  std::string line = outcome.messages.substr(0, outcome.messages.find('\n'));
  const size_t at = line.find("error: ");
  return at == std::string::npos ? line : line.substr(at + 7);
}

/// How much longer 1F1B may take on the second number of ranks.
constexpr double kNearlyAsGood = 1.1;

/// Numbers of ranks that divide the devices, those first on which 1F1B is
/// fastest; `failed` is the last try without a plan.
std::vector<Candidate> rankCounts(const CompileOptions &options,
                                  int64_t devices, Candidate &failed) {
  std::vector<Candidate> tried;
  for (int64_t ranks = 1; ranks <= devices; ++ranks) {
    if (devices % ranks != 0 ||
        (options.maxStages > 0 && ranks > options.maxStages))
      continue;
    Candidate candidate{"1f1b", ranks, 1, {}};
    evaluate(options, candidate);
    if (candidate.hasPlan())
      tried.push_back(std::move(candidate));
    else
      failed = std::move(candidate);
  }
  std::stable_sort(tried.begin(), tried.end(), better);
  return tried;
}

/// The next numbers of ranks to look at: the first of `order` from `from` on, and
/// at the start the second, if it is nearly as good.
std::vector<int64_t> nextRanks(const std::vector<Candidate> &order,
                               size_t &from) {
  std::vector<int64_t> ranks{order[from++].ranks};
  if (from == 1 && order.size() > 1 &&
      double(order[1].step()) <= kNearlyAsGood * double(order[0].step()))
    ranks.push_back(order[from++].ranks);
  return ranks;
}

std::vector<Candidate> candidatesOn(const std::vector<int64_t> &rankCounts,
                                    const CompileOptions &options) {
  std::vector<Candidate> candidates;
  auto add = [&](const ScheduleFamily &family, int64_t ranks, int32_t chunks) {
    candidates.push_back({std::string(family.name), ranks, chunks, {}});
  };
  for (const ScheduleFamily &family : scheduleFamilies()) {
    if (!whyNoPlan(family).empty())
      continue;
    for (int32_t chunks = family.leastChunks;
         chunks <= std::min(family.mostChunks, kMostChunks); ++chunks) {
      if (options.chunks != 0 && options.chunks != chunks)
        continue;
      if (options.stages > 0 && options.stages % chunks == 0)
        add(family, options.stages / chunks, chunks);
      for (const int64_t ranks : rankCounts)
        add(family, ranks, chunks);
    }
  }
  return candidates;
}

void printTable(const std::vector<Candidate> &candidates, size_t best,
                std::ostream &err) {
  size_t width = 8;
  for (const Candidate &candidate : candidates)
    width = std::max(width, candidate.schedule.size());
  err << fmt::format("{:<{}}  ranks  chunks        step   bubble     "
                           "memory   gap to its bound\n",
                           "schedule", width);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate &candidate = candidates[i];
    std::string line = fmt::format("{:<{}}  {:>5}  {:>6}  ", candidate.schedule,
                                   width, candidate.ranks, candidate.chunks);
    if (candidate.hasPlan()) {
      const ordered_json &report = candidate.outcome.report;
      const ordered_json &bounds = report.at("schedule_bounds");
      line += fmt::format(
          "{:>10}  {:>5.1f} %  {:>9}   ", formatTime(candidate.step()),
          100 * report.at("bubble").get<double>(),
          formatBytes(candidate.peak()));
      line += bounds.is_null()
                  ? std::string("-")
                  : fmt::format("{:.1f} % ({}, {})",
                                100 * bounds.at("gap").get<double>(),
                                formatTime(bounds.at("bound_ns").get<Nanos>()),
                                bounds.at("rule").get<std::string>());
      line += i == best ? "  taken" : "";
    } else {
      line += reasonOf(candidate.outcome);
    }
    err << line << '\n';
  }
}

} // namespace

/// Evaluates candidates; the index of the best with a plan, or their number. An
/// interrupt leaves those out that would come after an answer.
static size_t bestOf(const CompileOptions &options,
                     std::vector<Candidate> &candidates) {
  size_t best = candidates.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (search::interrupted() && best < i) {
      candidates.resize(i);
      return best;
    }
    evaluate(options, candidates[i]);
    if (candidates[i].hasPlan() && (best == candidates.size() ||
                                    better(candidates[i], candidates[best])))
      best = i;
  }
  return best;
}

ExitCode takt::chooseSchedule(CompileOptions &options, std::ostream &err) {
  Diagnostics diags;
  const std::optional<ModelSpec> model = readModel(options.model, diags);
  const std::optional<ClusterSpec> cluster =
      readCluster(options.cluster, diags);
  if (!model || !cluster) {
    diags.print(err);
    return ExitCode::BadInput;
  }
  if (model->training.mode == rt::Mode::Inference) {
    err << "taktc: error: '--schedule=auto' chooses among schedules of training; "
           "the mode 'inference' has one, 'forward'\n";
    return ExitCode::Usage;
  }
  CompileOptions asked = options;
  if (!asked.cuts.empty())
    asked.stages = int64_t(asked.cuts.size()) + 1;
  int64_t devices = 0;
  for (const NodeGroupSpec &group : cluster->nodes)
    devices += group.count * group.devices;

  Candidate failed;
  std::vector<Candidate> order, candidates;
  size_t from = 0, best = 0;
  if (asked.stages == 0)
    order = rankCounts(asked, devices, failed);
  do {
    const std::vector<int64_t> ranks =
        order.empty() ? std::vector<int64_t>() : nextRanks(order, from);
    candidates = candidatesOn(ranks, asked);
    best = bestOf(asked, candidates);
  } while (best == candidates.size() && from < order.size());
  if (best == candidates.size()) {
    const Candidate &first = candidates.empty() ? failed : candidates.front();
    err << first.outcome.messages
        << "taktc: error: '--schedule=auto': no schedule has a plan\n";
    return first.outcome.code == int(ExitCode::Done)
               ? ExitCode::Infeasible
               : ExitCode(first.outcome.code);
  }
  if (!options.quiet)
    printTable(candidates, best, err);
  options.schedule = candidates[best].schedule;
  options.stages = candidates[best].stages();
  options.chunks = candidates[best].chunks;
  options.maxStages = 0;
  return ExitCode::Done;
}
