//===- file.cpp - plans in files --------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Files are read whole and replaced whole: a run that starts while a compiler
// writes sees the old plan or the new one.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/file.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/core/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

namespace takt::rt {

namespace {

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void failWithErrno(const std::string &what,
                                const std::string &path) {
  throw Error(
      fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

/// Plans are megabytes; a stream without an end must not fill the memory.
constexpr size_t kMostFileBytes = size_t(1) << 31;

using Wanted = bool (*)(const std::string &beginning);

std::string readAll(std::FILE *file, const std::string &path, Wanted wanted) {
  std::string content;
  char chunk[1 << 16];
  while (size_t n = std::fread(chunk, 1, sizeof(chunk), file)) {
    bool isFirst = content.empty();
    content.append(chunk, n);
    if (isFirst && !wanted(content))
      return content;
    if (content.size() > kMostFileBytes)
      throw Error(fmt::format("'{}' is larger than 2 GiB", path));
  }
  if (std::ferror(file))
    failWithErrno("read", path);
  return content;
}

void writeAll(std::FILE *file, const std::string &content,
              const std::string &path) {
  if (std::fwrite(content.data(), 1, content.size(), file) != content.size() ||
      std::fflush(file) != 0)
    failWithErrno("write", path);
}

} // namespace

std::string readFileIf(const std::string &path, Wanted wanted) {
  if (path == "-")
    return readAll(stdin, "standard input", wanted);
  FilePointer file(std::fopen(path.c_str(), "rb"));
  if (!file)
    failWithErrno("open", path);
  return readAll(file.get(), path, wanted);
}

std::string readFile(const std::string &path) {
  return readFileIf(path, [](const std::string &) { return true; });
}

std::string temporaryName(const std::string &path) {
  return fmt::format("{}.tmp{}", path, getpid());
}

void writeFile(const std::string &path, const std::string &content) {
  if (path == "-")
    return writeAll(stdout, content, "standard output");
  // Devices and pipes cannot be replaced, only written to.
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    FilePointer file(std::fopen(path.c_str(), "wb"));
    if (!file)
      failWithErrno("open", path);
    return writeAll(file.get(), content, path);
  }
  const std::string temporary = temporaryName(path);
  try {
    FilePointer file(std::fopen(temporary.c_str(), "wb"));
    if (!file)
      failWithErrno("create", temporary);
    writeAll(file.get(), content, temporary);
    if (std::fclose(file.release()) != 0)
      failWithErrno("write", temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0)
      failWithErrno("replace", path);
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

uint64_t planHash(const Plan &plan) {
  uint64_t hash = 14695981039346656037u;
  for (uint8_t byte : serialize(plan))
    hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

std::string planHashText(uint64_t hash) { return fmt::format("{:016x}", hash); }

bool looksLikePlan(const std::string &content) {
  return isPlanFile(reinterpret_cast<const uint8_t *>(content.data()),
                    content.size()) ||
         looksLikePlanText(content);
}

Plan readPlan(const std::string &path, Reading reading) {
  return parsePlan(readFileIf(path, looksLikePlan),
                   path == "-" ? "standard input" : path, reading);
}

/// What to do with a schedule where a plan is needed.
static std::string scheduleHint(const std::string &name) {
  bool isSchedule =
      name.size() > 4 && name.compare(name.size() - 4, 4, ".csv") == 0;
  return isSchedule ? fmt::format("; 'taktc MODEL CLUSTER --schedule={}' makes "
                                  "a plan of a schedule",
                                  name)
                    : "";
}

Plan parsePlan(const std::string &content, const std::string &name,
               Reading reading) {
  auto bytes = reinterpret_cast<const uint8_t *>(content.data());
  Plan plan;
  if (isPlanFile(bytes, content.size()))
    plan = deserialize(bytes, content.size(), name, reading);
  else if (looksLikePlanText(content))
    plan = parsePlanText(content, name, reading);
  else
    throw Error(
        fmt::format("{}: neither a plan file nor the text form of a plan{}",
                    name, scheduleHint(name)));
  if (reading == Reading::Proof && !hasCertificate(plan))
    requireProof(prove(plan), name);
  return plan;
}

void writePlan(const Plan &plan, const std::string &path) {
  std::vector<uint8_t> bytes = serialize(plan);
  writeFile(path, std::string(bytes.begin(), bytes.end()));
}

} // namespace takt::rt
