//===- segment.cpp - a segment of shared memory ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The room is taken when the segment is made: a file system that is full must
// be a message and not a bus error in the middle of a step.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/shared_memory.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace takt::rt {

static std::byte *map(int fd, size_t bytes, const std::string &name) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    throw Error(fmt::format("cannot map the shared memory '{}' of {} bytes: {}",
                            name, bytes, std::strerror(errno)),
                ExitCode::DoesNotFit);
  return static_cast<std::byte *>(at);
}

static constexpr const char *kFolder = "/dev/shm";

namespace {
struct Closer {
  int fd;
  ~Closer() {
    if (fd >= 0)
      close(fd);
  }
};
} // namespace

/// A segment without a name, or with it where the system knows none without.
static int makeFile(const std::string &name, bool &isNamed) {
  int fd = ::open(kFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  isNamed = fd < 0;
  if (isNamed)
    fd = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  return fd;
}

// The name comes last: who finds it without a lock knows that its process is
// dead.
Segment Segment::create(const std::string &name, size_t bytes) {
  bool isNamed = false;
  Segment segment;
  segment.lock = makeFile(name, isNamed);
  if (segment.lock < 0)
    throw Error(fmt::format("cannot make the shared memory '{}': {}", name,
                            std::strerror(errno)),
                ExitCode::DoesNotFit);
  if (isNamed)
    segment.name = name;
  flock(segment.lock, LOCK_EX | LOCK_NB);
  if (int error = posix_fallocate(segment.lock, 0, off_t(bytes)))
    throw Error(fmt::format("no room for {} bytes of shared memory in '{}': {} "
                            "(larger with docker's '--shm-size', not needed "
                            "with '--transport=tcp')",
                            bytes, kFolder, std::strerror(error)),
                ExitCode::DoesNotFit);
  segment.bytes = map(segment.lock, bytes, name);
  segment.count = bytes;
  std::string own = fmt::format("/proc/self/fd/{}", segment.lock);
  if (!isNamed && linkat(AT_FDCWD, own.c_str(), AT_FDCWD,
                         (kFolder + name).c_str(), AT_SYMLINK_FOLLOW) != 0)
    throw Error(fmt::format("cannot name the shared memory '{}': {}", name,
                            std::strerror(errno)),
                ExitCode::DoesNotFit);
  segment.name = name;
  return segment;
}

void Segment::removeName() {
  if (!name.empty())
    shm_unlink(name.c_str());
  if (lock >= 0)
    close(lock);
  name.clear();
  lock = -1;
}

void Segment::removeAbandoned(const std::string &prefix) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator file(kFolder, error), end; !error && file != end;
       file.increment(error)) {
    std::string name = "/" + file->path().filename().string();
    if (name.rfind(prefix, 0) == 0)
      names.push_back(name);
  }
  for (const std::string &name : names) {
    Closer file{shm_open(name.c_str(), O_RDWR, 0)};
    struct stat status {};
    if (file.fd >= 0 && fstat(file.fd, &status) == 0 &&
        status.st_uid == getuid() && flock(file.fd, LOCK_EX | LOCK_NB) == 0)
      shm_unlink(name.c_str());
  }
}

Segment Segment::open(const std::string &name) {
  int fd = shm_open(name.c_str(), O_RDWR, 0);
  if (fd < 0)
    throw Error(fmt::format("cannot open the shared memory '{}': {}", name,
                            std::strerror(errno)),
                ExitCode::Communication);
  Closer closer{fd};
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size <= 0)
    throw Error(fmt::format("the shared memory '{}' is empty", name),
                ExitCode::Communication);
  Segment segment;
  segment.bytes = map(fd, size_t(status.st_size), name);
  segment.count = size_t(status.st_size);
  return segment;
}

Segment::Segment(Segment &&other) noexcept
    : bytes(std::exchange(other.bytes, nullptr)),
      count(std::exchange(other.count, 0)), name(std::exchange(other.name, "")),
      lock(std::exchange(other.lock, -1)) {}

Segment &Segment::operator=(Segment &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(count, other.count);
  std::swap(name, other.name);
  std::swap(lock, other.lock);
  return *this;
}

Segment::~Segment() {
  removeName();
  if (bytes)
    munmap(bytes, count);
}

} // namespace takt::rt
