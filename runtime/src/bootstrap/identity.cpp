//===- identity.cpp - which rank this process is --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Flags count before everything, then the environment, in which all launchers
// that are there must say the same.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace takt::rt {

[[noreturn]] static void wrongUsage(const std::string &what) {
  throw Error(what, ExitCode::Usage);
}

namespace {
struct Launcher {
  const char *name;
  std::optional<Claim> (*ask)(const Environment &);
};
} // namespace

static const Launcher kLaunchers[] = {
    {"takt", claimOfTakt},       {"torchrun", claimOfTorchrun},
    {"openmpi", claimOfOpenMpi}, {"mpich", claimOfMpich},
    {"slurm", claimOfSlurm},     {"kubernetes", claimOfKubernetes}};

const std::vector<std::string> &launcherNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> names = {"auto"};
    for (const Launcher &launcher : kLaunchers)
      names.push_back(launcher.name);
    names.push_back("none");
    return names;
  }();
  return names;
}

/// What those say that are asked: the one that was named, or all.
static std::vector<Claim> claimsOf(const Environment &environment,
                                   const std::string &launcher) {
  std::vector<Claim> claims;
  for (const Launcher &known : kLaunchers)
    if (launcher == "auto" || launcher == known.name)
      if (std::optional<Claim> claim = known.ask(environment))
        claims.push_back(std::move(*claim));
  return claims;
}

static void requireAgreement(const Claim &a, const Claim &b) {
  auto differ = [](int32_t x, int32_t y) { return x >= 0 && y >= 0 && x != y; };
  const char *way = "choose one with '--launcher', or give '--rank' and "
                    "'--world-size'";
  if (differ(a.rank, b.rank))
    wrongUsage(fmt::format("{} says rank {} ({}) and {} says rank {} ({}): {}",
                           a.launcher, a.rank, a.rankFrom, b.launcher, b.rank,
                           b.rankFrom, way));
  if (differ(a.world, b.world))
    wrongUsage(fmt::format("{} says {} processes ({}) and {} says {} ({}): {}",
                           a.launcher, a.world, a.worldFrom, b.launcher,
                           b.world, b.worldFrom, way));
}

/// What claims that agree say together; the first that knows a rank counts
/// before the others.
static Claim together(std::vector<Claim> claims) {
  std::stable_partition(claims.begin(), claims.end(),
                        [](const Claim &claim) { return claim.rank >= 0; });
  Claim all = claims[0];
  for (const Claim &other : claims) {
    if (all.world < 0 && other.world >= 0)
      all.worldFrom = other.worldFrom;
    for (int32_t Claim::*field :
         {&Claim::world, &Claim::localRank, &Claim::localWorld, &Claim::node})
      if (all.*field < 0)
        all.*field = other.*field;
    for (std::string Claim::*field :
         {&Claim::rendezvous, &Claim::job, &Claim::noRendezvous})
      if ((all.*field).empty())
        all.*field = other.*field;
  }
  return all;
}

/// A launcher that says half: going by it, each process would train alone.
static void requireWhole(const Claim &claim, const IdentityFlags &flags) {
  bool noRank = claim.rank < 0 && flags.rank < 0;
  bool noWorld = claim.world < 0 && !claim.worldFrom.empty() && flags.world < 0;
  if (!noRank && !noWorld)
    return;
  const std::string &missing = noRank ? claim.rankFrom : claim.worldFrom;
  const std::string &there = noRank ? claim.worldFrom : claim.rankFrom;
  wrongUsage(fmt::format("the environment has {} without {} ({}): set it, give "
                         "'{}', or have all ranks here with '--threads'",
                         there, missing, claim.launcher,
                         noRank ? "--rank" : "--world-size"));
}

/// The claim that counts: of the launcher that was named, or of all that agree.
static std::optional<Claim> choose(std::vector<Claim> claims,
                                   const std::string &launcher,
                                   const IdentityFlags &flags) {
  bool flagsSayAll = flags.rank >= 0 && flags.world >= 0;
  if (launcher == "auto")
    // A launcher of one process says nothing about the others that the plan
    // needs: the process was started alone.
    claims.erase(std::remove_if(claims.begin(), claims.end(),
                                [](const Claim &c) { return c.world == 1; }),
                 claims.end());
  else if (claims.empty() && launcher != "none" && !flagsSayAll)
    wrongUsage(fmt::format("'{}' is to say the rank, but its variables are not "
                           "in the environment",
                           launcher));
  if (claims.empty())
    return std::nullopt;
  for (size_t i = 1; i < claims.size() && !flagsSayAll; ++i)
    requireAgreement(claims[0], claims[i]);
  Claim chosen = together(std::move(claims));
  requireWhole(chosen, flags);
  return chosen;
}

/// Of a process that nothing started as a rank: flags that would mean one.
static void refuseFlagsOfRanks(const IdentityFlags &flags) {
  if (flags.world > 1)
    wrongUsage("'--world-size' needs '--rank'");
  const char *option = flags.node >= 0             ? "--node"
                       : !flags.rendezvous.empty() ? "--rendezvous"
                                                   : flags.ofProcesses.c_str();
  if (*option != '\0')
    wrongUsage(
        fmt::format("'{}' is for ranks that are processes, and nothing says "
                    "which rank this "
                    "one is: start all here with '-n N', or give '--rank'",
                    option));
}

static std::string launcherOf(const Environment &environment,
                              const IdentityFlags &flags) {
  if (flags.launcher != "auto")
    return flags.launcher;
  std::string name = environment.text("TAKT_LAUNCHER").value_or("auto");
  const std::vector<std::string> &known = launcherNames();
  if (std::find(known.begin(), known.end(), name) == known.end())
    wrongUsage(fmt::format("the environment has TAKT_LAUNCHER='{}', which is "
                           "none of {}",
                           name, fmt::join(known, ", ")));
  return name;
}

std::optional<Identity> identify(const Environment &environment,
                                 const IdentityFlags &flags,
                                 int32_t planRanks) {
  std::string launcher = launcherOf(environment, flags);
  std::vector<Claim> claims = claimsOf(environment, launcher);
  bool isAlone = claims.empty();
  std::optional<Claim> claim = choose(std::move(claims), launcher, flags);
  if (!claim && flags.rank < 0) {
    if (isAlone)
      refuseFlagsOfRanks(flags);
    return std::nullopt;
  }
  Claim found = claim.value_or(Claim());
  Identity identity;
  identity.rank = flags.rank >= 0 ? flags.rank : found.rank;
  identity.world = flags.world >= 0   ? flags.world
                   : found.world >= 0 ? found.world
                                      : planRanks;
  identity.localRank = found.localRank;
  identity.localWorld = found.localWorld;
  identity.node = flags.node >= 0
                      ? flags.node
                      : environment.number("TAKT_NODE").value_or(found.node);
  identity.job = found.job;
  identity.source =
      flags.rank >= 0
          ? (flags.world >= 0 ? "flags (--rank, --world-size)"
                              : "flags (--rank)")
          : fmt::format("{} ({}{})", found.launcher, found.rankFrom,
                        found.worldFrom.empty() ? "" : ", " + found.worldFrom);
  if (identity.rank >= identity.world)
    wrongUsage(fmt::format("rank {} of {} processes, by {}: ranks go from 0 "
                           "to {}",
                           identity.rank, identity.world, identity.source,
                           identity.world - 1));
  auto firstOf = [&](const std::string &flag, const char *variable,
                     const std::string &otherwise) {
    return !flag.empty() ? flag
                         : environment.text(variable).value_or(otherwise);
  };
  identity.rendezvous =
      firstOf(flags.rendezvous, "TAKT_RENDEZVOUS", found.rendezvous);
  identity.token = firstOf(flags.token, "TAKT_TOKEN", "");
  identity.address = environment.text("TAKT_ADDRESS").value_or("");
  identity.servedByLauncher =
      environment.text("TAKT_STORE").value_or("") == "launcher" &&
      flags.rendezvous.empty();
  if (identity.world > 1 && identity.rendezvous.empty())
    wrongUsage(fmt::format(
        "rank {} of {} does not know where to meet the others{}: give "
        "'--rendezvous=HOST:PORT' with the host of rank 0, or "
        "'--rendezvous=file:/FOLDER' that all see",
        identity.rank, identity.world,
        found.noRendezvous.empty() ? "" : ": " + found.noRendezvous));
  return identity;
}

} // namespace takt::rt
