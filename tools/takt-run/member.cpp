//===- member.cpp - one process of a run ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Which failure a process ends with: its own, or that of the rank that failed
// first.
//
//===----------------------------------------------------------------------===//

#include "member.h"

#include "log.h"

#include "takt-rt/core/file.h"
#ifdef TAKT_WITH_MPI
#include "takt-rt/mpi/mpi_exchange.h"
#endif

#include <fmt/format.h>

#include <iostream>
#include <numeric>
#include <unistd.h>

namespace takt::run {

using rt::Error;
using rt::ExitCode;

std::optional<rt::Identity> identityAmong(const RunOptions &options,
                                          int32_t ranks) {
  // A dry run starts no processes.
  bool isDry =
      !options.dryRun.empty() && (options.processes || !options.hosts.empty());
  if (options.threads || isDry) {
    log().open("all");
    return std::nullopt;
  }
  rt::IdentityFlags flags = options.identity;
  if (options.transport != "auto")
    flags.ofProcesses = "--transport=" + options.transport;
  std::optional<rt::Identity> identity =
      rt::identify(rt::Environment::ofThisProcess(), flags, ranks);
  if (!identity) {
    log().open("all");
    return identity;
  }
  log().open(std::to_string(identity->rank));
  log().debug(rt::LogTopic::Start,
              fmt::format("rank {} of {} by {}, meets at {}", identity->rank,
                          identity->world, identity->source,
                          identity->rendezvous));
  return identity;
}

std::optional<rt::Identity> identityFor(const RunOptions &options,
                                        const rt::Plan &plan) {
  std::optional<rt::Identity> identity =
      identityAmong(options, plan.numRanks());
  if (identity && identity->world != plan.numRanks())
    throw Error(fmt::format("the plan has {} ranks, and there are {} processes "
                            "by {}",
                            plan.numRanks(), identity->world, identity->source),
                ExitCode::DoesNotFit);
  // A plan of one rank needs nobody.
  return identity && identity->world > 1 ? identity : std::nullopt;
}

/// What went wrong on another rank, as this one says it.
static Error asPeer(const rt::Abort &abort) {
  std::string first = abort.what.substr(0, abort.what.find('\n'));
  return Error(abort.rank < 0
                   ? first
                   : fmt::format("rank {} failed: {}", abort.rank, first),
               ExitCode::PeerFailed);
}

Error inShort(const rt::Identity &identity, int32_t failed,
              const Error &error) {
  if (failed < 0 || !identity.servedByLauncher)
    return error;
  return Error(fmt::format("rank {} failed", failed), ExitCode::PeerFailed);
}

/// What makes ranks wait for each other.
static std::string agreedOptions(const RunOptions &options) {
  std::string text;
  auto add = [&](const char *name, const std::string &value) {
    if (!value.empty())
      text += fmt::format("{} {}\n", name, value);
  };
  auto present = [&](const char *name, bool is) {
    if (is)
      text += fmt::format("{}\n", name);
  };
  add("--steps", options.steps ? std::to_string(*options.steps) : "");
  add("--transport", options.transport);
  present("--emulate-links", options.emulateLinks);
  add("--checkpoint", options.checkpoint);
  if (!options.checkpoint.empty())
    add("--checkpoint-every", std::to_string(options.checkpointEvery));
  present("--load-weights", !options.loadWeights.empty());
  present("--save-weights", !options.saveWeights.empty());
  present("--outputs", !options.outputs.empty());
  present("--dump-gradients", !options.dumpGradients.empty());
  present("--profile", !options.profile.empty());
  present("--trace", !options.trace.empty());
  present("--timeline", !options.timeline.empty());
  return text;
}

static rt::SessionOptions sessionOptions(const RunOptions &options,
                                         const rt::Plan &plan,
                                         int64_t firstStep) {
  rt::SessionOptions session;
  session.planHash = rt::planHashText(rt::planHash(plan));
  session.start = fmt::format("step-{}", firstStep);
  session.version = TAKT_VERSION;
  session.agreed = agreedOptions(options);
  session.startSeconds = options.startTimeout;
  session.log = [](const std::string &line) {
    log().add(rt::LogLevel::Warn, rt::LogTopic::Start, line);
  };
  return session;
}

Member::Member(const RunOptions &options, const rt::Plan &plan,
               const rt::Identity &identity, int64_t firstStep)
    : options(options), identity(identity),
      session(identity, sessionOptions(options, plan, firstStep)),
      gather(session) {
  constexpr double kGrace = 20; // seconds for a call that computes to end
  session.watch(
      [this](const rt::Abort &abort) {
        interrupt.raise(asPeer(abort));
        if (rt::Exchange *exchange = toWake)
          exchange->ringAll();
      },
      kGrace,
      [](const rt::Abort &abort) {
        log().error(fmt::format("{}; this rank did not end in time",
                                asPeer(abort).what()));
        _exit(int(ExitCode::PeerFailed));
      });
}

/// Messages by what was asked for.
static rt::ProcessExchange connectBy(const std::string &transport,
                                     const rt::Plan &plan,
                                     rt::Session &session) {
  if (transport == "mpi") {
#ifdef TAKT_WITH_MPI
    return {rt::connectMpi(plan, session.rank()), "MPI"};
#else
    throw Error("this takt-run was built without mpi: TAKT_ENABLE_MPI",
                ExitCode::DoesNotFit);
#endif
  }
  return rt::connectProcesses(plan, session,
                              transport == "shm"
                                  ? rt::TransportKind::SharedMemory
                              : transport == "tcp" ? rt::TransportKind::Tcp
                                                   : rt::TransportKind::Auto);
}

Member::~Member() { session.stopWatching(); }

void Member::connect(const rt::Plan &plan, rt::Nanos predictedStep) {
  connected = connectBy(options.transport, plan, session);
  toWake = connected.exchange.get();
  patience = options.timeoutSeconds
                 ? std::make_unique<rt::Patience>(*options.timeoutSeconds)
                 : std::make_unique<rt::Patience>(options.timeoutFloor,
                                                  options.timeoutFactor,
                                                  predictedStep);
  team = std::make_unique<rt::TeamOfMany>(
      *connected.exchange, identity.rank, identity.world, interrupt,
      [this] { return patience->seconds(); });
  theSeats.ranks = {identity.rank};
  theSeats.nodeRanks = session.nodeRanks();
  theSeats.exchange = connected.exchange.get();
  theSeats.team = team.get();
  theSeats.interrupt = &interrupt;
  theSeats.patience = patience.get();
  log().debug(rt::LogTopic::Comm,
              fmt::format("messages by {}; {} of {} ranks are on this node",
                          connected.summary, session.nodeRanks().size(),
                          identity.world));
  if (identity.rank == 0)
    log().add(rt::LogLevel::Info, rt::LogTopic::Start,
              fmt::format("rank 0 of {} by {}, met at {}, messages by {}",
                          identity.world, identity.source, identity.rendezvous,
                          connected.summary));
}

Share Member::share() {
  // The first to come draws the word.
  std::string word = session.store().setFirst(
      "run", rt::hex(rt::randomDigest()).substr(0, 16));
  return {{identity.rank}, &gather, word};
}

std::vector<std::string> GatherInStore::gather(const std::string &topic,
                                               const std::string &report) {
  constexpr double kPatience = 600; // seconds, of disks
  std::string prefix = "gather/" + topic;
  session.store().set(fmt::format("{}/{}", prefix, session.rank()), report);
  if (!commits())
    return {};
  std::vector<int32_t> all(session.size());
  std::iota(all.begin(), all.end(), 0);
  return rt::waitForAll(session.store(), prefix, all, rt::deadlineIn(kPatience),
                        topic);
}

void Member::leave() {
  session.leave();
  connected.exchange->finish();
}

Error Member::verdict(const Error &error) {
  rt::Abort first = session.fail(error);
  return first.rank == identity.rank ? Error(error.what(), ExitCode(first.code))
                                     : asPeer(first);
}

void Member::fail(const Error &error) {
  rt::Abort first = session.fail(error);
  if (first.rank == identity.rank)
    throw Error(error.what(), ExitCode(first.code));
  throw inShort(identity, first.rank, asPeer(first));
}

} // namespace takt::run
