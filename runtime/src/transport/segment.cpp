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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace takt::rt {

static std::byte *map(int fd, size_t bytes, const std::string &name) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    throw Error(fmt::format("cannot map the shared memory '{}' of {} bytes: {}",
                            name, bytes, std::strerror(errno)),
                ExitCode::DoesNotFit);
  return static_cast<std::byte *>(at);
}

namespace {
struct Closer {
  int fd;
  ~Closer() { close(fd); }
};
} // namespace

Segment Segment::create(const std::string &name, size_t bytes) {
  int fd = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (fd < 0)
    throw Error(fmt::format("cannot make the shared memory '{}': {}", name,
                            std::strerror(errno)),
                ExitCode::DoesNotFit);
  Closer closer{fd};
  try {
    if (int error = posix_fallocate(fd, 0, off_t(bytes)))
      throw Error(fmt::format("no room for {} bytes of shared memory in "
                              "'/dev/shm': {} (larger with docker's "
                              "'--shm-size', not needed with "
                              "'--transport=tcp')",
                              bytes, std::strerror(error)),
                  ExitCode::DoesNotFit);
    Segment segment;
    segment.bytes = map(fd, bytes, name);
    segment.count = bytes;
    return segment;
  } catch (...) {
    removeName(name);
    throw;
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

void Segment::removeName(const std::string &name) { shm_unlink(name.c_str()); }

Segment::Segment(Segment &&other) noexcept
    : bytes(std::exchange(other.bytes, nullptr)),
      count(std::exchange(other.count, 0)) {}

Segment &Segment::operator=(Segment &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(count, other.count);
  return *this;
}

Segment::~Segment() {
  if (bytes)
    munmap(bytes, count);
}

} // namespace takt::rt
