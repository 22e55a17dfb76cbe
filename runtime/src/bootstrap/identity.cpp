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

#include <algorithm>

namespace takt::rt {

[[noreturn]] static void wrongUsage(const std::string &what) {
  throw Error(what, ExitCode::Usage);
}

/// A launcher of one process says nothing about the others that the plan needs:
/// the process was started alone.
static bool isOfMany(const Claim &claim) {
  return claim.rank >= 0 && claim.world != 1;
}

static std::vector<Claim> allClaims(const Environment &environment) {
  std::vector<Claim> claims;
  for (auto ask : {claimOfTakt, claimOfTorchrun, claimOfOpenMpi, claimOfMpich,
                   claimOfSlurm, claimOfKubernetes})
    if (std::optional<Claim> claim = ask(environment))
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

/// The claim that counts: of the launcher that was named, or of all that agree.
static std::optional<Claim> choose(std::vector<Claim> claims,
                                   const std::string &launcher,
                                   bool flagsSayAll) {
  if (launcher == "none")
    return std::nullopt;
  if (launcher != "auto") {
    for (Claim &claim : claims)
      if (claim.launcher == launcher)
        return claim;
    if (flagsSayAll)
      return std::nullopt;
    wrongUsage(fmt::format("'{}' is to say the rank, but its variables are not "
                           "in the environment",
                           launcher));
  }
  claims.erase(std::remove_if(claims.begin(), claims.end(),
                              [](const Claim &c) { return !isOfMany(c); }),
               claims.end());
  if (claims.empty())
    return std::nullopt;
  for (size_t i = 1; i < claims.size() && !flagsSayAll; ++i)
    requireAgreement(claims[0], claims[i]);
  Claim chosen = claims[0];
  // What the first does not say, the others may.
  for (const Claim &other : claims) {
    for (int32_t Claim::*field :
         {&Claim::world, &Claim::localRank, &Claim::localWorld, &Claim::node})
      if (chosen.*field < 0)
        chosen.*field = other.*field;
    for (std::string Claim::*field : {&Claim::rendezvous, &Claim::job,
                                      &Claim::worldFrom, &Claim::noRendezvous})
      if ((chosen.*field).empty())
        chosen.*field = other.*field;
  }
  return chosen;
}

std::optional<Identity> identify(const Environment &environment,
                                 const IdentityFlags &flags,
                                 int32_t planRanks) {
  std::string launcher = flags.launcher;
  if (launcher == "auto")
    launcher = environment.text("TAKT_LAUNCHER").value_or("auto");
  std::optional<Claim> claim = choose(allClaims(environment), launcher,
                                      flags.rank >= 0 && flags.world >= 0);
  if (!claim && flags.rank < 0) {
    if (flags.world > 1)
      wrongUsage("'--world-size' needs '--rank'");
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
