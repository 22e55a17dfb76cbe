//===- store.cpp - the folder that a run writes to ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A name that begins with a point is never taken for a checkpoint, whatever
// moment the process ends at.
//
//===----------------------------------------------------------------------===//

#include "store.h"

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace fs = std::filesystem;

namespace takt::rt {

static constexpr char kUnfinished[] = ".tmp";

std::string temporaryFolder(const CheckpointOptions &options, int64_t step) {
  return fmt::format("{}/.{}.{}{}", options.folder, checkpointName(step),
                     options.run, kUnfinished);
}

CheckpointStore::CheckpointStore(const CheckpointOptions &options)
    : options(options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (!fs::is_directory(options.folder))
    throw Error(fmt::format("cannot make folder '{}': {}", options.folder,
                            error ? error.message() : "it is a file"));
  lock = std::make_unique<disk::FolderLock>(options.folder);
  removeUnfinished();
  checkNewer();
}

void CheckpointStore::removeUnfinished() {
  std::vector<fs::path> unfinished;
  for (const fs::directory_entry &file :
       fs::directory_iterator(options.folder)) {
    std::string name = file.path().filename().string();
    if (name.rfind(".step-", 0) == 0 && file.path().extension() == kUnfinished)
      unfinished.push_back(file.path());
  }
  for (const fs::path &path : unfinished)
    fs::remove_all(path);
}

/// What is wrong with a checkpoint that a run finds in its folder; empty:
/// nothing.
static std::string faultOf(const std::string &path, Check check) {
  try {
    openCheckpoint(path, check);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

/// A run that starts over in the folder of another would leave checkpoints that
/// are newer than its own. Nothing is moved for a run that is refused.
void CheckpointStore::checkNewer() {
  auto all = listCheckpoints(options.folder);
  std::vector<std::string> broken;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    const auto &[step, path] = *it;
    bool isNewer = step > options.startStep;
    if (!faultOf(path, isNewer ? Check::Contents : Check::Sizes).empty())
      broken.push_back(path);
    else if (isNewer)
      throw Error(fmt::format(
          "'{}' holds checkpoints up to step {}, and this run begins at step "
          "{}: go on from there with '--resume {}', or name another folder",
          options.folder, step, options.startStep, options.folder));
    else
      paths.insert(paths.begin(), path);
  }
  for (const std::string &path : broken) {
    std::string aside = fmt::format("{}/broken-{}", options.folder,
                                    fs::path(path).filename().string());
    fs::remove_all(aside);
    disk::rename(path, aside);
  }
}

/// The file by which other tools find the weights.
static void writeIndex(const std::string &path, const Plan &plan,
                       Manifest &manifest) {
  nlohmann::ordered_json index;
  uint64_t bytes = 0;
  nlohmann::json files; // names in order
  for (const CheckpointShard &shard : checkpointShards(plan))
    for (const StateTensor &tensor : shard.weights) {
      files[tensor.name] = shard.weightFile;
      bytes += uint64_t(tensor.places.front().bytes);
    }
  index["metadata"] = {{"total_size", bytes}};
  index["weight_map"] = files;
  std::string text =
      index.dump(2, ' ', false,
                 nlohmann::ordered_json::error_handler_t::replace) +
      '\n';
  disk::NewFile file(path + "/" + kIndexFile);
  file.write(text.data(), text.size());
  file.finish();
  manifest.files.push_back({kIndexFile, file.bytes(), file.crc()});
}

std::string CheckpointStore::commit(const Plan &plan, Manifest manifest) {
  std::string temporary = temporaryFolder(options, manifest.step);
  std::string path =
      fmt::format("{}/{}", options.folder, checkpointName(manifest.step));
  writeIndex(temporary, plan, manifest);
  std::string text = formatManifest(manifest);
  disk::NewFile file(temporary + "/" + kManifestFile);
  file.write(text.data(), text.size());
  file.finish();
  disk::syncFolder(temporary);
  disk::rename(temporary, path);
  disk::syncFolder(options.folder);
  paths.push_back(path);
  return path;
}

void CheckpointStore::discard(int64_t step) noexcept {
  std::error_code ignored;
  fs::remove_all(temporaryFolder(options, step), ignored);
}

void CheckpointStore::removeOld() {
  while (options.keep > 0 && int64_t(paths.size()) > options.keep) {
    std::string old = paths.front();
    paths.erase(paths.begin());
    std::string renamed =
        fmt::format("{}/.{}.old{}", options.folder,
                    fs::path(old).filename().string(), kUnfinished);
    fs::remove_all(renamed);
    disk::rename(old, renamed);
    fs::remove_all(renamed);
  }
}

} // namespace takt::rt
