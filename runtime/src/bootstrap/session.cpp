//===- session.cpp - this process as one of a run -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Ranks share memory when they run on one boot of one kernel, see one /dev/shm,
// and nothing says that they are on two nodes.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <numeric>
#include <sstream>

namespace takt::rt {

using Clock = std::chrono::steady_clock;

static constexpr const char *kFolderPrefix = "file:";

static std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

/// Equal on processes that can share memory.
static std::string nodeKey(int32_t node) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat shm {};
  stat("/dev/shm", &shm);
  return fmt::format("{}/{}/{}/{}/{}", node, boot.empty() ? hostName() : boot,
                     shm.st_dev, shm.st_ino, getuid());
}

static bool isFolder(const std::string &rendezvous) {
  return rendezvous.rfind(kFolderPrefix, 0) == 0;
}

/// The first option that only one of two processes has.
static std::string difference(const std::string &its, const std::string &mine,
                              int32_t itsRank, int32_t myRank) {
  std::istringstream a(its), b(mine);
  for (std::string x, y;;) {
    bool hasX = bool(std::getline(a, x)), hasY = bool(std::getline(b, y));
    if (hasX != hasY || x != y)
      return fmt::format("rank {} has '{}' where rank {} has '{}': start all "
                         "ranks with the same options",
                         itsRank, hasX ? x : "", myRank, hasY ? y : "");
    if (!hasX)
      return "";
  }
}

Session::Session(const Identity &identity, SessionOptions options)
    : identity(identity), options(std::move(options)),
      deadline(deadlineIn(this->options.startSeconds)) {
  // Keeps other jobs out, not people who know the job's name. The plan is no
  // part of it: who comes with another plan is to hear so. Nor is the name of a
  // folder, which processes may see in different places.
  if (this->identity.token.empty())
    this->identity.token = hex(sha256(
        fmt::format("takt/{}/{}", identity.job,
                    isFolder(identity.rendezvous) ? "" : identity.rendezvous)));
  open();
  try {
    meet();
  } catch (const Error &error) {
    fail(error);
    // Those that are only now coming are to hear it too; whoever did not come
    // before the deadline is not waited for again.
    lingerForOthers(error.code() != ExitCode::Timeout);
    throw;
  }
}

Session::~Session() {
  stopWatching();
  lingerForOthers(false);
}

void Session::stopWatching() {
  quit = true;
  if (watcher.joinable())
    watcher.join();
}

/// Who serves the store stays until the others have heard why the run ends:
/// those that are connected, and with `late` those that have not come yet.
void Session::lingerForOthers(bool late) {
  constexpr double kLonger = 3;
  if (theStore)
    theStore->abandon();
  theStore.reset();
  for (Deadline end = deadlineIn(kLonger); server && Clock::now() < end;) {
    bool allCame = !late || server->ranksSeen() >= size_t(identity.world);
    if (allCame && server->connections() == 0)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Session::open() {
  const std::string &where = identity.rendezvous;
  if (where.rfind(kFolderPrefix, 0) == 0) {
    theStore = std::make_unique<FolderStore>(
        where.substr(std::string(kFolderPrefix).size()), identity.rank,
        identity.world, deadline);
    return;
  }
  Address address = Address::parse(where);
  if (identity.rank == 0 && !identity.servedByLauncher) {
    bool isLocal =
        address.host == "localhost" || address.host.rfind("127.", 0) == 0;
    Address at{isLocal ? address.host : "", address.port};
    server = std::make_unique<StoreServer>(Socket::listenOn(at), identity.token,
                                           options.log);
  }
  auto store = std::make_unique<TcpStore>(
      address, identity.token, identity.rank, deadline, options.patience);
  tcp = store.get();
  theStore = std::move(store);
}

/// Text as one word, and back; the word begins with a letter.
static std::string hexOf(const std::string &text) {
  std::string word;
  for (unsigned char c : text)
    word += fmt::format("{:02x}", c);
  return word;
}

static std::string textOf(const std::string &word) {
  std::string text;
  for (size_t i = 1; i + 1 < word.size(); i += 2) {
    // Stays 0 where there is no number: the texts differ then, which is said.
    unsigned value = 0;
    std::from_chars(word.data() + i, word.data() + i + 2, value, 16);
    text += char(value);
  }
  return text;
}

/// Tells the others what this process is and reads what they are.
void Session::meet() {
  std::string mine = fmt::format(
      "{} {} {} {} {} {} x{}", options.version, options.planHash, options.start,
      nodeKey(identity.node), hostName(), getpid(), hexOf(options.agreed));
  // A folder has no doorkeeper: who writes into it shows here that it knows the
  // token.
  mine += " " + hex(hmacSha256(identity.token, mine));
  if (theStore->setFirst(fmt::format("hello/{}", identity.rank), mine) != mine)
    throw Error(fmt::format("two processes say that they are rank {} ({})",
                            identity.rank, identity.source),
                ExitCode::Usage);
  std::vector<int32_t> all(identity.world);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::string> said =
      waitForAll(*theStore, "hello", all, deadline, "rendezvous");
  // Who comes last finds all there, and may be too late all the same.
  if (std::optional<Abort> abort = look())
    throw RankFailed(*abort);
  std::string version, plan, start, node;
  std::istringstream(mine) >> version >> plan >> start >> node;
  for (int32_t r : all) {
    std::string itsVersion, itsPlan, itsStart, itsNode, itsHost, pid, itsAgreed;
    std::istringstream(said[r]) >> itsVersion >> itsPlan >> itsStart >>
        itsNode >> itsHost >> pid >> itsAgreed;
    size_t end = said[r].find_last_of(' ');
    if (end == std::string::npos ||
        said[r].substr(end + 1) !=
            hex(hmacSha256(identity.token, said[r].substr(0, end))))
      throw Error(fmt::format("rank {} does not know the run's token", r),
                  ExitCode::Communication);
    if (itsVersion != version)
      throw Error(fmt::format("rank {} runs takt-run {} on '{}' and rank {} "
                              "runs {}",
                              r, itsVersion, itsHost, identity.rank, version),
                  ExitCode::DoesNotFit);
    if (itsPlan != plan)
      throw Error(fmt::format("rank {} on '{}' has another plan than rank {}: "
                              "{} and {}",
                              r, itsHost, identity.rank, itsPlan, plan),
                  ExitCode::DoesNotFit);
    if (itsStart != start)
      throw Error(fmt::format("rank {} on '{}' would begin at {} and rank {} "
                              "at {}: they see other checkpoints",
                              r, itsHost, itsStart, identity.rank, start),
                  ExitCode::DoesNotFit);
    std::string mismatch =
        difference(textOf(itsAgreed), options.agreed, r, identity.rank);
    if (!mismatch.empty())
      throw Error(mismatch, ExitCode::DoesNotFit);
    if (itsNode == node)
      onThisNode.push_back(r);
  }
}

std::string Session::address() const {
  if (!identity.address.empty())
    return identity.address;
  if (isOneNode())
    return "127.0.0.1";
  // Rank 0 reaches its own store from inside; the others came by its address.
  if (tcp && identity.rank == 0 && !identity.servedByLauncher)
    return Address::parse(identity.rendezvous).host;
  return tcp ? tcp->localHost() : hostName();
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Session::watch(std::function<void(const Abort &)> onAbort,
                    double graceSeconds,
                    std::function<void(const Abort &)> onOverdue) {
  heard = std::move(onAbort);
  overdue = std::move(onOverdue);
  grace = graceSeconds;
  watcher = std::thread([this] { watchLoop(); });
}

std::optional<Abort> Session::look() {
  try {
    std::optional<std::string> text = theStore->get(kAbortKey);
    return text ? Abort::parse(*text) : std::nullopt;
  } catch (const Error &error) {
    return Abort{identity.servedByLauncher ? -1 : 0, int(ExitCode::PeerFailed),
                 error.what()};
  }
}

void Session::watchLoop() {
  // Often enough to be at once for people, seldom enough for a thousand ranks.
  auto pause = std::chrono::milliseconds(std::max(25, size() / 4));
  Deadline nextBeat = Clock::now();
  std::optional<Abort> abort;
  while (!quit && !abort) {
    if (Clock::now() >= nextBeat) {
      nextBeat = deadlineIn(1);
      try {
        theStore->beat();
      } catch (const Error &) {
        // A store that is lost shows in the look that follows.
      }
    }
    abort = look();
    if (!abort)
      std::this_thread::sleep_for(pause);
  }
  if (!abort || quit)
    return;
  heard(*abort);
  Deadline end = deadlineIn(grace);
  while (!quit && Clock::now() < end)
    std::this_thread::sleep_for(pause);
  if (!quit)
    overdue(*abort);
}

/// A peer that is gone is a consequence: its own report may be on its way, and
/// somebody may notice that it is dead.
std::optional<Abort> Session::newsOfPeer() {
  Deadline end = deadlineIn(options.newsSeconds);
  std::map<int32_t, std::string> before = theStore->signsOfLife();
  while (Clock::now() < end) {
    if (std::optional<Abort> abort = look())
      return abort;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const auto &[rank, sign] : theStore->signsOfLife())
    if (auto then = before.find(rank);
        then != before.end() && then->second == sign)
      return Abort{
          rank, int(ExitCode::PeerFailed),
          fmt::format("it has shown no life for {:g} s", options.newsSeconds)};
  return std::nullopt;
}

Abort Session::fail(const Error &error) {
  Abort mine{identity.rank, int(error.code()), error.what()};
  try {
    if (error.code() == ExitCode::PeerFailed) {
      std::optional<Abort> news = newsOfPeer();
      // Nobody has failed, so it was the connection.
      mine.code = int(ExitCode::Communication);
      mine = news.value_or(mine);
    }
    return Abort::parse(theStore->setFirst(kAbortKey, mine.text()))
        .value_or(mine);
  } catch (const Error &) {
    // Nobody is there to tell.
    return {identity.rank, int(error.code()), error.what()};
  }
}

void Session::leave() {
  stopWatching();
  theStore->set(leftKey(identity.rank), "");
  if (server) {
    std::vector<int32_t> others(identity.world - 1);
    std::iota(others.begin(), others.end(), 1);
    waitForAll(*theStore, "left", others, deadlineIn(options.patience),
               "end of the run");
  }
  theStore->leave();
}

} // namespace takt::rt
