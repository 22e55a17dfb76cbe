//===- folder.cpp - checkpoints in a folder -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Files are read once for their checksums, in blocks; tensors are read later,
// each by the rank that needs it.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/folder.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

namespace fs = std::filesystem;

namespace takt::rt {

static constexpr std::string_view kPrefix = "step-";

std::string checkpointName(int64_t step) {
  return fmt::format("{}{:08}", kPrefix, step);
}

static std::optional<int64_t> stepOfName(const std::string &name) {
  constexpr size_t kDigits = 8;
  if (name.compare(0, kPrefix.size(), kPrefix) != 0 ||
      name.size() < kPrefix.size() + kDigits)
    return std::nullopt;
  int64_t step = 0;
  const char *end = name.data() + name.size();
  auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || at != end || step < 0 ||
      checkpointName(step) != name)
    return std::nullopt;
  return step;
}

std::vector<std::pair<int64_t, std::string>>
listCheckpoints(const std::string &folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  if (!fs::exists(folder, error))
    return found;
  fs::directory_iterator files(folder, error), end;
  if (error)
    throw Error(
        fmt::format("cannot read folder '{}': {}", folder, error.message()));
  for (; files != end; files.increment(error)) {
    std::optional<int64_t> step = stepOfName(files->path().filename().string());
    if (step && files->is_directory(error))
      found.emplace_back(*step, files->path().string());
    if (error)
      break;
  }
  std::sort(found.begin(), found.end());
  return found;
}

static void checkContent(const std::string &path, const CheckpointFile &file) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(size_t(1) << 18);
  uint32_t crc = 0;
  uint64_t bytes = 0;
  while (in.read(block.data(), std::streamsize(block.size())),
         in.gcount() > 0) {
    crc = crc32c(crc, block.data(), size_t(in.gcount()));
    bytes += uint64_t(in.gcount());
  }
  if (bytes != file.bytes || in.bad())
    throw Error(fmt::format("cannot read '{}'", path));
  if (crc != file.crc)
    throw Error(fmt::format("'{}' is damaged: its checksum is {:08x} and not "
                            "{:08x}",
                            path, crc, file.crc));
}

static void addTensors(const std::string &path, Checkpoint &checkpoint) {
  for (TensorInfo &tensor : readSafetensorsIndex(path).tensors) {
    std::string name = tensor.name;
    auto [entry, isNew] =
        checkpoint.tensors.insert({name, {path, std::move(tensor)}});
    if (!isNew)
      throw Error(fmt::format("tensor '{}' is both in '{}' and in '{}'", name,
                              entry->second.file, path));
  }
}

Checkpoint openCheckpoint(const std::string &path, Check check) {
  std::string manifest = (fs::path(path) / kManifestFile).string();
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.manifest = parseManifest(readFile(manifest), manifest);
  for (const CheckpointFile &file : checkpoint.manifest.files) {
    fs::path at = fs::path(path) / file.name;
    std::error_code error;
    uint64_t bytes = fs::file_size(at, error);
    if (error)
      throw Error(
          fmt::format("cannot read '{}': {}", at.string(), error.message()));
    if (bytes != file.bytes)
      throw Error(fmt::format("'{}' has {} bytes where '{}' says {}",
                              at.string(), bytes, kManifestFile, file.bytes));
    if (check == Check::Contents)
      checkContent(at.string(), file);
    if (at.extension() == ".safetensors")
      addTensors(at.string(), checkpoint);
  }
  return checkpoint;
}

FoundCheckpoint findCheckpoint(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    throw Error(fmt::format("there is no checkpoint '{}'", path));
  FoundCheckpoint found;
  std::vector<std::pair<int64_t, std::string>> all = listCheckpoints(path);
  if (all.empty() && fs::exists(fs::path(path) / kManifestFile, error)) {
    found.checkpoint = openCheckpoint(path, Check::Contents);
    return found;
  }
  if (all.empty())
    throw Error(fmt::format("folder '{}' holds no checkpoint: neither '{}' nor "
                            "a folder such as '{}'",
                            path, kManifestFile, checkpointName(200)));
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    try {
      found.checkpoint = openCheckpoint(it->second, Check::Contents);
      return found;
    } catch (const Error &why) {
      found.passedOver.emplace_back(it->second, why.what());
    }
  }
  std::vector<std::string> faults;
  for (const auto &[at, why] : found.passedOver)
    faults.push_back(why);
  throw Error(fmt::format("folder '{}' holds no checkpoint that is whole: {}",
                          path, fmt::join(faults, "; ")));
}

} // namespace takt::rt
