//===- folder_store.cpp - a store in a folder that all processes see ------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rank 0 makes a folder for the run and names it in the file 'current'; the
// others put a number drawn for this start into it and wait until rank 0 has
// seen it. So what an earlier run left is never taken for this one. A value is
// a file that appears whole, by rename or link.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"
#include "takt-rt/bootstrap/store.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace takt::rt {

namespace fs = std::filesystem;

static constexpr auto kPause = std::chrono::milliseconds(10);
static constexpr auto kDead = std::chrono::seconds(15);
/// A folder in which nothing has changed for so long has no run: each of its
/// ranks would have shown life every second.
static constexpr auto kStale = std::chrono::hours(1);

static std::optional<std::string> contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

/// Writes a file that appears whole; with `first` only where there is none.
static void put(const std::string &path, const std::string &value, bool first) {
  std::string temporary =
      fmt::format("{}.{}", path, hex(randomDigest()).substr(0, 16));
  bool done = false;
  {
    std::ofstream file(temporary, std::ios::binary);
    done = bool(file << value << std::flush);
  }
  if (done && first)
    done = link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST;
  else if (done)
    done = std::rename(temporary.c_str(), path.c_str()) == 0;
  int error = errno;
  if (!done || first)
    unlink(temporary.c_str());
  if (!done)
    throw Error(
        fmt::format("cannot write '{}': {}", path, std::strerror(error)),
        ExitCode::Communication);
}

FolderStore::FolderStore(const std::string &folder, int32_t rank, int32_t size,
                         Deadline deadline)
    : folder(folder), rank(rank), size(size), lives(size) {
  std::error_code error;
  // Only the last of the path: the others are misspelt if they are not there.
  if (rank == 0)
    isOwnFolder = fs::create_directory(folder, error);
  if (error)
    throw Error(
        fmt::format("cannot make the folder '{}': {}", folder, error.message()),
        ExitCode::Communication);
  if (rank == 0)
    assemble(deadline);
  else
    join(deadline);
  for (Life &life : lives)
    life.since = std::chrono::steady_clock::now();
}

FolderStore::~FolderStore() = default;

//===----------------------------------------------------------------------===//
// What is left behind
//===----------------------------------------------------------------------===//

static bool isRunName(const std::string &name) {
  constexpr std::string_view kBefore = "run-";
  return name.size() == kBefore.size() + 32 && name.rfind(kBefore, 0) == 0 &&
         name.find_first_not_of("0123456789abcdef", kBefore.size()) ==
             std::string::npos;
}

/// When something in a folder was last changed.
static fs::file_time_type lastChange(const fs::path &folder) {
  std::error_code none;
  fs::file_time_type last = fs::last_write_time(folder, none);
  for (fs::directory_iterator file(folder, none), end; !none && file != end;
       file.increment(none)) {
    std::error_code gone;
    fs::file_time_type time = fs::last_write_time(file->path(), gone);
    if (!gone)
      last = std::max(last, time);
  }
  return last;
}

/// Removes what runs that were killed left. `now`: by the clock of the disk
/// that the folder is on, which may be another machine's.
static void removeStale(const fs::path &folder, fs::file_time_type now) {
  std::vector<fs::path> stale;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    std::error_code gone;
    if (isRunName(entry->path().filename().string()) &&
        entry->is_directory(gone) && !entry->is_symlink(gone) &&
        lastChange(entry->path()) + kStale < now)
      stale.push_back(entry->path());
  }
  for (const fs::path &run : stale)
    fs::remove_all(run, none);
}

/// A folder of which this program chose the name, as it does under mpirun, has
/// siblings of jobs that were killed, which nobody comes back to.
static void removeStaleSiblings(const fs::path &folder,
                                fs::file_time_type now) {
  std::string prefix = meetingFolderPrefix();
  if (folder.string().rfind(prefix, 0) != 0)
    return;
  std::vector<fs::path> stale;
  std::error_code none;
  for (fs::directory_iterator entry(folder.parent_path(), none), end;
       !none && entry != end; entry.increment(none)) {
    struct stat status {};
    if (entry->path().string().rfind(prefix, 0) == 0 &&
        entry->path() != folder && lstat(entry->path().c_str(), &status) == 0 &&
        S_ISDIR(status.st_mode) && status.st_uid == getuid())
      stale.push_back(entry->path());
  }
  for (const fs::path &sibling : stale) {
    removeStale(sibling, now);
    std::error_code gone;
    fs::path current = sibling / "current";
    fs::file_time_type time = fs::last_write_time(current, gone);
    if (gone || time + kStale < now) {
      fs::remove(current, gone);
      fs::remove(sibling, gone); // unless there is something in it
    }
  }
}

void FolderStore::remove() {
  std::error_code none;
  fs::remove_all(run, none);
  if (contentOf(folder + "/current") == fs::path(run).filename().string())
    fs::remove(folder + "/current", none);
  if (isOwnFolder)
    fs::remove(folder, none); // unless somebody has put something there
}

static std::string throughKey(int32_t rank) {
  return fmt::format("through/{}", rank);
}

void FolderStore::abandon() {
  if (std::exchange(isOver, true))
    return;
  constexpr double kLonger = 3; // seconds for the others to hear why
  try {
    set(throughKey(rank), "");
    if (rank != 0)
      return;
    // Whoever has failed needs to hear nothing, and may be dead.
    std::optional<Abort> abort = Abort::parse(get(kAbortKey).value_or(""));
    std::vector<int32_t> others;
    for (int32_t r = 1; r < size; ++r)
      if (!abort || r != abort->rank)
        others.push_back(r);
    Deadline end = deadlineIn(kLonger);
    auto isThrough = [&](int32_t r) {
      return get(throughKey(r)) || get(leftKey(r));
    };
    while (!std::all_of(others.begin(), others.end(), isThrough)) {
      if (std::chrono::steady_clock::now() > end)
        return;
      std::this_thread::sleep_for(kPause);
    }
    remove();
  } catch (const std::exception &) {
    // The folder is gone or full: there is nothing that could be done.
  }
}

//===----------------------------------------------------------------------===//
// The beginning
//===----------------------------------------------------------------------===//

std::string FolderStore::path(const std::string &key) const {
  std::string name = key;
  std::replace(name.begin(), name.end(), '/', '.');
  return run + "/" + name;
}

/// Rank 0: a folder for this run, then everyone's number.
void FolderStore::assemble(Deadline deadline) {
  std::string name = "run-" + hex(randomDigest()).substr(0, 32);
  run = folder + "/" + name;
  std::error_code error;
  if (!fs::create_directory(run, error))
    throw Error(
        fmt::format("cannot make the folder '{}': {}", run, error.message()),
        ExitCode::Communication);
  fs::permissions(run, fs::perms::owner_all, error);
  put(folder + "/current", name, false);
  fs::file_time_type now = fs::last_write_time(folder + "/current", error);
  if (!error) {
    removeStale(folder, now);
    removeStaleSiblings(folder, now);
  }
  std::vector<int32_t> others;
  for (int32_t r = 1; r < size; ++r)
    others.push_back(r);
  try {
    std::string all;
    for (const std::string &number :
         waitForAll(*this, "join", others, deadline,
                    fmt::format("rendezvous in '{}'", folder)))
      all += number + "\n";
    set("all", all);
  } catch (const Error &) {
    remove(); // who waits in it for this rank ends at the same deadline
    throw;
  }
}

/// Others: follow 'current' until rank 0 has seen this process in it.
void FolderStore::join(Deadline deadline) {
  std::string number = hex(randomDigest());
  std::string joined;
  bool isTaken = false; // this rank's place in that run, by another process
  for (;;) {
    std::optional<std::string> name = contentOf(folder + "/current");
    if (name && name->rfind("run-", 0) == 0 &&
        name->find('/') == std::string::npos) {
      run = folder + "/" + *name;
      std::error_code none;
      if (*name != joined && fs::is_directory(run, none)) {
        // A run that has begun or ended without this process is an old one, and
        // its folder may be on its way out.
        try {
          isTaken = !get("all") &&
                    setFirst(fmt::format("join/{}", rank), number) != number;
          joined = *name;
        } catch (const Error &) {
        }
      }
      std::optional<std::string> all = get("all");
      if (all && all->find(number) != std::string::npos)
        return;
      // Or it has ended in order since.
      if (isTaken && (all || !fs::exists(run, none)))
        throw Error(fmt::format("rendezvous in '{}': two processes say that "
                                "they are rank {}",
                                folder, rank),
                    ExitCode::Usage);
    }
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(fmt::format("rendezvous in '{}': rank 0 did not come in time",
                              folder),
                  ExitCode::Timeout);
    std::this_thread::sleep_for(kPause);
  }
}

void FolderStore::set(const std::string &key, const std::string &value) {
  put(path(key), value, false);
}

std::string FolderStore::setFirst(const std::string &key,
                                  const std::string &value) {
  put(path(key), value, true);
  return get(key).value_or(value);
}

std::optional<std::string> FolderStore::get(const std::string &key) {
  return contentOf(path(key));
}

/// Shows life, and looks whether the others do: rank 0 at all, all at rank 0.
void FolderStore::beat() {
  set(fmt::format("alive/{}", rank), std::to_string(++beats));
  auto now = std::chrono::steady_clock::now();
  for (int32_t r = 0; r < size; ++r) {
    if (r == rank || (rank != 0 && r != 0))
      continue;
    std::string sign = get(fmt::format("alive/{}", r)).value_or("");
    if (sign != lives[r].sign)
      lives[r] = {sign, now};
    if (now - lives[r].since > kDead && !get(leftKey(r)))
      setFirst(kAbortKey, Abort{r, int(ExitCode::PeerFailed),
                                "it has shown no life for 15 s"}
                              .text());
  }
}

std::map<int32_t, std::string> FolderStore::signsOfLife() {
  std::map<int32_t, std::string> signs;
  for (int32_t r = 0; r < size; ++r)
    if (r != rank && !get(leftKey(r)) && !get(throughKey(r)))
      signs[r] = get(fmt::format("alive/{}", r)).value_or("");
  return signs;
}

void FolderStore::leave() {
  isOver = true;
  if (rank != 0)
    return; // rank 0 may have taken the folder away by now
  // The last to leave an orderly run takes the folder away.
  std::vector<int32_t> others;
  for (int32_t r = 1; r < size; ++r)
    others.push_back(r);
  try {
    waitForAll(*this, "left", others, deadlineIn(10), "end of the run");
    remove();
  } catch (const Error &) {
    // Somebody may still read in it; a later run takes it away.
  }
}

} // namespace takt::rt
