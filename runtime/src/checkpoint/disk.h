//===- disk.h - files that survive a crash ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Writing so that what was said to be written is on the disk. Everything here
// throws `Error` (BadInput) with the path and the system's reason.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace takt::rt::disk {

/// A new file, written from its start; closed without a promise when destroyed.
class NewFile {
public:
  explicit NewFile(const std::string &path);
  ~NewFile();
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;

  void write(const void *bytes, size_t size);
  /// Returns once the content is on the disk.
  void finish();

  uint64_t bytes() const { return written; }
  uint32_t crc() const { return checksum; } ///< CRC-32C of the content

private:
  std::string path;
  int descriptor;
  uint64_t written = 0;
  uint32_t checksum = 0;
};

/// Returns once the names in the folder are on the disk.
void syncFolder(const std::string &path);

void rename(const std::string &from, const std::string &to);

/// A folder that one process at a time has for itself, until it ends, however
/// it ends; where the file system knows locks.
class FolderLock {
public:
  /// Throws when another process has it.
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int descriptor;
};

} // namespace takt::rt::disk
