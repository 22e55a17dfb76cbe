//===- store.h - what processes tell each other before and beside training -*-
// C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A small map from names to texts that all processes of a run see: addresses,
// agreement on the plan, reports and failures. One process serves it over TCP,
// or a folder that all see holds it. Data of training never goes through it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/doorkeeper.h"
#include "takt-rt/core/error.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace takt::rt {

constexpr size_t kMostKey = 256;
constexpr size_t kMostValue = 1 << 20;

/// May be used by several threads at once. Everything throws `Error`:
/// PeerFailed when who serves the store is gone, Communication when a folder
/// fails.
class Store {
public:
  virtual ~Store() = default;
  virtual void set(const std::string &key, const std::string &value) = 0;
  /// Sets a key that has no value yet; returns what it has now.
  virtual std::string setFirst(const std::string &key,
                               const std::string &value) = 0;
  virtual std::optional<std::string> get(const std::string &key) = 0;
  /// Tells that this process is alive; a folder needs to be told.
  virtual void beat() {}
  /// What the other ranks that have not ended last showed of their life, where
  /// they must; it changes every second.
  virtual std::map<int32_t, std::string> signsOfLife() { return {}; }
  /// Says good-bye: the end of this process is no failure from now on. Its
  /// `leftKey` must have been set.
  virtual void leave() = 0;
  /// Takes away what would be left of a run that has failed, once the others
  /// need it no more. Never throws.
  virtual void abandon() {}
};

/// Key "abort" of a run: the first failure.
struct Abort {
  int32_t rank = -1; ///< -1: the launcher
  int code = 0;      ///< exit code of that rank
  std::string what;

  std::string text() const;
  static std::optional<Abort> parse(const std::string &text);
};
constexpr const char *kAbortKey = "abort";

/// Another rank has failed. Code: PeerFailed.
class RankFailed : public Error {
public:
  explicit RankFailed(const Abort &abort);
  int32_t rank() const { return failedRank; }

private:
  int32_t failedRank;
};

/// Serves a store to the processes that know the token, from a thread of its
/// own. A connection that ends without a good-bye is taken for the death of its
/// rank and becomes the run's abort, unless there is one.
class StoreServer {
public:
  StoreServer(Socket listening, const std::string &token, Doorkeeper::Log log);
  ~StoreServer();

  uint16_t port() const { return listenPort; }
  /// Connections that have not ended, let in or not yet.
  size_t connections() const { return open; }
  /// The ranks that have been let in so far.
  size_t ranksSeen() const { return seen; }
  std::optional<std::string> get(const std::string &key);
  std::string setFirst(const std::string &key, const std::string &value);

private:
  struct Client {
    Socket socket;
    int32_t rank = -1;
    std::string in, out;
    bool saidGoodBye = false;
  };
  void serve();
  bool readFrom(Client &client);
  bool answer(Client &client);
  bool handle(Client &client, const std::string &request);
  bool flush(Client &client);

  Doorkeeper door;
  uint16_t listenPort;
  Doorkeeper::Log log;
  std::mutex mutex;
  std::map<std::string, std::string> values;
  size_t stored = 0;
  std::vector<Client> clients;
  std::set<int32_t> came; ///< ranks
  std::atomic<size_t> open{0}, seen{0};
  std::atomic<bool> quit{false};
  std::thread thread;
};

/// A store served over TCP. `patience`: seconds for the answer to a request.
class TcpStore final : public Store {
public:
  TcpStore(const Address &server, const std::string &token, int32_t rank,
           Deadline deadline, double patience);

  void set(const std::string &key, const std::string &value) override;
  std::string setFirst(const std::string &key,
                       const std::string &value) override;
  std::optional<std::string> get(const std::string &key) override;
  void leave() override;
  /// This machine's address as the server sees it.
  std::string localHost() const { return socket.localHost(); }

private:
  std::string ask(char what, const std::string &key, const std::string &value);

  std::mutex mutex;
  Socket socket;
  std::string server;
  double patience;
  bool broken = false;
};

/// A store in a folder, one run at a time, which is a folder "run-..." in it
/// and goes at its end, in order or not. Of a run of which nobody could take it
/// away the next one does, when that has shown no life for an hour. A rank that
/// has not shown life for 15 s becomes the run's abort.
class FolderStore final : public Store {
public:
  /// Returns when all ranks have come; throws `Error` (Timeout) that names the
  /// missing ones. Rank 0 makes the folder, but not the folder that it is in.
  FolderStore(const std::string &folder, int32_t rank, int32_t size,
              Deadline deadline);
  ~FolderStore() override;

  void set(const std::string &key, const std::string &value) override;
  std::string setFirst(const std::string &key,
                       const std::string &value) override;
  std::optional<std::string> get(const std::string &key) override;
  void beat() override;
  std::map<int32_t, std::string> signsOfLife() override;
  void leave() override;
  void abandon() override;

private:
  std::string path(const std::string &key) const;
  void assemble(Deadline deadline);
  void join(Deadline deadline);
  void remove();

  struct Life {
    std::string sign;
    Deadline since;
  };
  std::string folder, run;
  bool isOwnFolder = false; ///< it was not there before
  bool isOver = false;      ///< left or abandoned
  int32_t rank, size;
  uint64_t beats = 0;
  std::vector<Life> lives; ///< by rank
};

/// The key by which a rank says that it ends in order.
std::string leftKey(int32_t rank);

/// Waits until all keys "PREFIX/RANK" of `ranks` have values and returns them
/// in that order. Throws `Error`: Timeout that says `what` and names the ranks
/// without a value, Communication that names those that have left the run
/// without one; PeerFailed when the run has failed meanwhile.
std::vector<std::string> waitForAll(Store &store, const std::string &prefix,
                                    const std::vector<int32_t> &ranks,
                                    Deadline deadline, const std::string &what);

/// "ranks 1, 3 and 4"
std::string rankList(const std::vector<int32_t> &ranks);

} // namespace takt::rt
