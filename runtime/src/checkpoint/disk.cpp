//===- disk.cpp - files that survive a crash ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A file is on the disk after fsync of the file and of the folder that names
// it.
//
//===----------------------------------------------------------------------===//

#include "disk.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace takt::rt::disk {

[[noreturn]] static void fail(const std::string &what,
                              const std::string &path) {
  throw Error(
      fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

NewFile::NewFile(const std::string &path)
    : path(path),
      descriptor(
          open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor < 0)
    fail("create", path);
}

NewFile::~NewFile() {
  if (descriptor >= 0)
    close(descriptor);
}

void NewFile::write(const void *bytes, size_t size) {
  // In blocks, so that the checksum finds them in the cache.
  constexpr size_t kBlock = size_t(1) << 18;
  const auto *at = static_cast<const char *>(bytes);
  while (size > 0) {
    ssize_t done = ::write(descriptor, at, std::min(size, kBlock));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      fail("write", path);
    checksum = crc32c(checksum, at, size_t(done));
    written += uint64_t(done);
    at += done;
    size -= size_t(done);
  }
}

void NewFile::finish() {
  if (fsync(descriptor) != 0)
    fail("write", path);
  int closed = close(descriptor);
  descriptor = -1;
  if (closed != 0)
    fail("write", path);
}

void syncFolder(const std::string &path) {
  int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    fail("open", path);
  // Some file systems have no fsync of folders and say so.
  int failed = fsync(folder) != 0 && errno != EINVAL ? errno : 0;
  close(folder);
  errno = failed;
  if (failed != 0)
    fail("write", path);
}

void rename(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail(fmt::format("rename '{}' to", from), to);
}

FolderLock::FolderLock(const std::string &folder) {
  std::string path = folder + "/.lock";
  descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0)
    fail("create", path);
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return;
  int reason = errno;
  // A file system without locks cannot tell, and is no reason not to save.
  if (reason == ENOLCK || reason == EOPNOTSUPP || reason == ENOSYS)
    return;
  close(descriptor);
  if (reason == EWOULDBLOCK)
    throw Error(
        fmt::format("another run writes its checkpoints to '{}'", folder));
  errno = reason;
  fail("lock", path);
}

FolderLock::~FolderLock() { close(descriptor); }

} // namespace takt::rt::disk
