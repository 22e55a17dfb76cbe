//===- launch.cpp - starting the processes of a run -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One loop over pipes and a signalfd. Children have process groups of their
// own, so that Ctrl-C reaches them once, through this process.
//
//===----------------------------------------------------------------------===//

#include "launch.h"

#include "hosts.h"
#include "lines.h"
#include "log.h"

#include "takt-rt/bootstrap/store.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/trace/why_hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <numeric>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace takt::run {

using rt::Error;
using rt::ExitCode;

namespace {
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
/// Seconds in which the others end by themselves once one has failed, and in
/// which they then obey SIGTERM.
constexpr double kGrace = 10;

class Launcher {
public:
  Launcher(const LocalRanks &local, char **arguments);
  ~Launcher();
  int run();

private:
  void start(int rank);
  void becomeChild(int rank, int out, int err);
  void look();
  void handleSignals();
  void reap();
  void ended(int rank, int status);
  void endOthers();
  bool isAnyUnstopped() const;
  void passOn(int signal);
  void signalAll(int signal);
  int exitCode() const;

  char **arguments;
  LocalRanks local;
  std::string token;
  std::unique_ptr<rt::StoreServer> server;
  sigset_t oldMask{};
  int signals = -1;
  std::vector<pid_t> children; ///< by rank from the first on; 0 once ended
  LastWords lastWords;
  std::vector<Lines> pipes;
  int alive = 0;
  int firstCode = 0;  ///< of the child that failed first
  int stopSignal = 0; ///< the last that was passed on
  bool halted = false, diedOfStop = false;
  bool wasKilled = false; ///< a child, and not by this process
  bool failed = false, termSent = false, killSent = false;
  rt::Deadline nextMeasure;
};

Launcher::Launcher(const LocalRanks &local, char **arguments)
    : arguments(arguments), local(local), token(rt::hex(rt::randomDigest())) {
  // Before the server's thread starts, which must not get them.
  sigset_t mask;
  sigemptyset(&mask);
  for (int signal : kSignals)
    sigaddset(&mask, signal);
  sigprocmask(SIG_BLOCK, &mask, &oldMask);
  signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (!local.rendezvous.empty())
    return;
  server = std::make_unique<rt::StoreServer>(
      rt::Socket::listenOn({"127.0.0.1", 0}), token,
      [](const std::string &line) {
        log().add(rt::LogLevel::Warn, rt::LogTopic::Start, line);
      });
}

/// Signals stay blocked: one that comes now must not change the exit code.
Launcher::~Launcher() {
  signalAll(SIGKILL);
  if (signals >= 0)
    close(signals);
}

void Launcher::signalAll(int signal) {
  for (pid_t child : children)
    if (child > 0)
      kill(-child, signal);
}

//===----------------------------------------------------------------------===//
// Children
//===----------------------------------------------------------------------===//

void Launcher::becomeChild(int rank, int out, int err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, &oldMask, nullptr);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  if (out >= 0)
    dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  auto set = [](const char *name, const std::string &value) {
    setenv(name, value.c_str(), 1);
  };
  set("TAKT_RANK", std::to_string(rank));
  set("TAKT_WORLD_SIZE", std::to_string(local.world));
  set("TAKT_LOCAL_RANK", std::to_string(rank - local.first));
  set("TAKT_LOCAL_WORLD_SIZE", std::to_string(local.count));
  set("TAKT_NODE", std::to_string(local.node));
  set("TAKT_LAUNCHER", "takt");
  set("TAKT_STORE", server ? "launcher" : "rank0");
  if (server)
    set("TAKT_TOKEN", token);
  set("TAKT_RENDEZVOUS",
      server ? fmt::format("127.0.0.1:{}", server->port()) : local.rendezvous);
  execv("/proc/self/exe", arguments);
  std::cerr << fmt::format("cannot start '/proc/self/exe': {}\n",
                           std::strerror(errno));
  _exit(int(ExitCode::Internal));
}

void Launcher::start(int rank) {
  int out[2] = {-1, -1}, err[2];
  // Standard output of rank 0 is the run's own: a report, or losses, that
  // another program may read.
  if ((rank != 0 && pipe2(out, O_CLOEXEC) != 0) || pipe2(err, O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)),
                ExitCode::DoesNotFit);
  pid_t child = fork();
  if (child == 0)
    becomeChild(rank, out[1], err[1]);
  if (child < 0)
    throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)),
                ExitCode::DoesNotFit);
  setpgid(child, child); // also by the child: whoever is first
  children.push_back(child);
  ++alive;
  for (const auto &[ends, to] :
       {std::pair(out, &std::cout), std::pair(err, &std::cerr)}) {
    if (ends[0] < 0)
      continue;
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipes.emplace_back(ends[0], rank, *to,
                       to == &std::cerr ? &lastWords : nullptr);
  }
}

void Launcher::reap() {
  int status = 0;
  for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
    for (size_t i = 0; i < children.size(); ++i)
      if (children[i] == child) {
        children[i] = 0;
        --alive;
        ended(local.first + int(i), status);
      }
}

void Launcher::ended(int rank, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  std::string what =
      fmt::format("its process ended with code {}", WEXITSTATUS(status));
  int code = WEXITSTATUS(status);
  if (WIFSIGNALED(status) && stopSignal != 0 &&
      (halted || WTERMSIG(status) == stopSignal)) {
    diedOfStop = true;
    code = 128 + stopSignal;
    what = "it was told to end at once";
  } else if (WIFSIGNALED(status)) {
    wasKilled |= !termSent;
    code = int(ExitCode::PeerFailed);
    what = fmt::format("its process was killed by signal {} ({})",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    log().error(fmt::format("rank {}: {}", rank, what));
  }
  if (server)
    server->setFirst(rt::kAbortKey, rt::Abort{rank, code, what}.text());
  else if (failed && firstCode == int(ExitCode::PeerFailed) && !wasKilled)
    firstCode = code; // what the others ended for
  if (failed)
    return;
  failed = true;
  firstCode = code;
  nextMeasure = rt::deadlineIn(kGrace);
}

/// Whether any that is left can still end by itself.
bool Launcher::isAnyUnstopped() const {
  return std::any_of(children.begin(), children.end(), [](pid_t child) {
    return child > 0 && rt::processLetter(child) != 'T';
  });
}

/// Once one has failed the others end by themselves, or are ended. One that is
/// stopped obeys no signal but SIGKILL.
void Launcher::endOthers() {
  if (!failed || alive == 0 || killSent)
    return;
  bool canEnd = isAnyUnstopped();
  if (canEnd && std::chrono::steady_clock::now() < nextMeasure)
    return;
  termSent |= !canEnd;
  std::vector<int32_t> left;
  for (size_t i = 0; i < children.size(); ++i)
    if (children[i] > 0)
      left.push_back(local.first + int32_t(i));
  log().warn(fmt::format("{} did not end: {}", rt::rankList(left),
                         !canEnd    ? "stopped by a signal, killed"
                         : termSent ? "killed"
                                    : "sent SIGTERM"));
  signalAll(termSent ? SIGKILL : SIGTERM);
  killSent = termSent;
  termSent = true;
  nextMeasure = rt::deadlineIn(kGrace);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void Launcher::handleSignals() {
  signalfd_siginfo info{};
  while (read(signals, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD)
      reap();
    else
      passOn(int(info.ssi_signo));
  }
}

/// The first ends the run in order, a second one at once.
void Launcher::passOn(int signal) {
  halted = stopSignal != 0;
  stopSignal = signal;
  signalAll(halted ? SIGKILL : signal);
}

void Launcher::look() {
  constexpr int kLook = 200; // milliseconds
  std::vector<pollfd> waits{{signals, POLLIN, 0}};
  for (const Lines &pipe : pipes)
    waits.push_back({pipe.descriptor(), POLLIN, 0});
  poll(waits.data(), waits.size(), kLook);
  for (size_t i = 0; i < pipes.size(); ++i)
    if (pipes[i].isOpen() && waits[i + 1].revents != 0)
      pipes[i].pass();
  handleSignals();
  endOthers();
}

int Launcher::run() {
  for (int i = 0; i < local.count; ++i)
    start(local.first + i);
  while (alive > 0)
    look();
  for (Lines &pipe : pipes)
    if (pipe.isOpen())
      pipe.pass();
  lastWords.finish(std::cerr);
  return exitCode();
}

int Launcher::exitCode() const {
  if (!failed)
    return int(ExitCode::Done);
  if (diedOfStop)
    return 128 + stopSignal;
  if (auto text = server ? server->get(rt::kAbortKey) : std::nullopt)
    if (auto abort = rt::Abort::parse(*text))
      // Its peers, who saw a connection end, may have spoken first.
      return wasKilled && abort->code == int(ExitCode::Communication)
                 ? int(ExitCode::PeerFailed)
                 : abort->code;
  return firstCode;
}
} // namespace

int startProcesses(const LocalRanks &local, char **arguments) {
  log().open("launcher");
  log().debug(rt::LogTopic::Start,
              fmt::format("starts {} of {} ranks, from rank {} on", local.count,
                          local.world, local.first));
  return Launcher(local, arguments).run();
}

/// Ranks that the options speak of.
static int32_t ranksAskedFor(const RunOptions &options,
                             const std::vector<Host> &hosts) {
  return std::accumulate(
      hosts.begin(), hosts.end(), options.processes.value_or(0),
      [](int32_t sum, const Host &host) { return sum + host.ranks; });
}

int launch(const RunOptions &options, bool plan, char **arguments) {
  const char *option = options.processes ? "-n" : "--hosts";
  std::vector<Host> hosts;
  if (!options.hosts.empty())
    hosts = parseHosts(options.hosts);
  int32_t ranks = ranksAskedFor(options, hosts);
  if (plan && options.plan == "-")
    throw Error(fmt::format("with '{}' the plan cannot come from standard "
                            "input: name a file",
                            option),
                ExitCode::Usage);
  if (plan) {
    rt::Plan read = rt::readPlan(options.plan, rt::Reading::Structure);
    if (read.numRanks() != ranks)
      throw Error(fmt::format("the plan has {} ranks and '{}' asks for {} "
                              "processes",
                              read.numRanks(), option, ranks),
                  ExitCode::DoesNotFit);
    std::string warning = layoutWarning(hosts, read);
    if (!warning.empty() && options.identity.node <= 0)
      log().warn(warning);
  }
  if (hosts.empty())
    return startProcesses({0, ranks, ranks, 0, ""}, arguments);
  if (options.identity.node >= 0)
    return startProcesses(
        ranksOfHost(hosts, options.identity.node, options.identity.rendezvous),
        arguments);
  std::cout << startScript(hosts, arguments) << std::flush;
  return int(ExitCode::Done);
}

} // namespace takt::run
