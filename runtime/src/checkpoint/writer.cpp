//===- writer.cpp - checkpoints while training goes on --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The thread owns the copy of the state while `busy` is set, the caller
// otherwise.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/checkpoint/writer.h"

#include "store.h"

#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

namespace takt::rt {

class CheckpointWriter::Impl {
public:
  Impl(const Plan &plan, CheckpointOptions options, StateMemory memory,
       Gather &gather);
  ~Impl();

  void save(Manifest at);
  void wait();
  std::vector<CheckpointOutcome> outcomes();

private:
  using Lock = std::unique_lock<std::mutex>;

  /// One file to write, with the state that goes into it.
  struct Part {
    std::string file;
    int32_t rank;
    std::vector<StateTensor> tensors;
    size_t first; ///< element of the copy
  };

  void copyState();
  void loop();
  CheckpointOutcome write();
  std::vector<CheckpointFile> writeParts(const std::string &folder);
  CheckpointFile writePart(const std::string &folder, const Part &part);
  void commit(const std::vector<std::string> &reports,
              CheckpointOutcome &outcome);

  const Plan &plan;
  const CheckpointOptions options;
  const StateMemory memory;
  Gather &gather;
  std::unique_ptr<CheckpointStore> store; ///< null where nothing is committed
  std::vector<Part> parts;
  std::vector<float> copy;
  Manifest manifest; ///< of the copy

  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false, quit = false;
  std::vector<CheckpointOutcome> finished;
  std::thread thread;
};

static size_t elementsOf(const StateTensor &tensor) {
  return size_t(tensor.places.front().bytes) / sizeof(float);
}

CheckpointWriter::Impl::Impl(const Plan &plan, CheckpointOptions given,
                             StateMemory memory, Gather &gather)
    : plan(plan), options(std::move(given)), memory(std::move(memory)),
      gather(gather) {
  size_t elements = 0;
  auto add = [&](int32_t rank, std::string &file,
                 std::vector<StateTensor> &tensors) {
    if (tensors.empty())
      return;
    parts.push_back({std::move(file), rank, std::move(tensors), elements});
    for (const StateTensor &tensor : parts.back().tensors)
      elements += elementsOf(tensor);
  };
  for (CheckpointShard &shard : checkpointShards(plan)) {
    const std::vector<int32_t> &own = options.ranks;
    if (!own.empty() &&
        std::find(own.begin(), own.end(), shard.rank) == own.end())
      continue;
    add(shard.rank, shard.weightFile, shard.weights);
    add(shard.rank, shard.optimizerFile, shard.optimizer);
  }
  copy.resize(elements);
  if (gather.commits())
    store = std::make_unique<CheckpointStore>(options);
  thread = std::thread([this] { loop(); });
}

CheckpointWriter::Impl::~Impl() {
  {
    Lock lock(mutex);
    quit = true;
  }
  changed.notify_all();
  thread.join();
}

//===----------------------------------------------------------------------===//
// The side that trains
//===----------------------------------------------------------------------===//

void CheckpointWriter::Impl::copyState() {
  for (const Part &part : parts) {
    float *to = copy.data() + part.first;
    for (const StateTensor &tensor : part.tensors) {
      const float *from = memory(part.rank, tensor.places.front());
      to = std::copy(from, from + elementsOf(tensor), to);
    }
  }
}

void CheckpointWriter::Impl::save(Manifest at) {
  Lock lock(mutex);
  changed.wait(lock, [&] { return !busy; });
  at.writer = options.writer;
  manifest = std::move(at);
  copyState();
  busy = true;
  changed.notify_all();
}

void CheckpointWriter::Impl::wait() {
  Lock lock(mutex);
  changed.wait(lock, [&] { return !busy; });
}

std::vector<CheckpointOutcome> CheckpointWriter::Impl::outcomes() {
  Lock lock(mutex);
  return std::exchange(finished, {});
}

//===----------------------------------------------------------------------===//
// The thread that writes
//===----------------------------------------------------------------------===//

void CheckpointWriter::Impl::loop() {
  for (;;) {
    {
      Lock lock(mutex);
      changed.wait(lock, [&] { return busy || quit; });
      if (!busy)
        return;
    }
    CheckpointOutcome outcome = write();
    {
      Lock lock(mutex);
      finished.push_back(std::move(outcome));
      busy = false;
    }
    changed.notify_all();
  }
}

CheckpointFile CheckpointWriter::Impl::writePart(const std::string &folder,
                                                 const Part &part) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
  size_t elements = 0;
  for (const StateTensor &tensor : part.tensors) {
    shapes.emplace_back(tensor.name, tensor.shape);
    elements += elementsOf(tensor);
  }
  std::string header =
      safetensorsHeader(shapes, {{"format", "pt"},
                                 {"model", manifest.model},
                                 {"step", std::to_string(manifest.step)},
                                 {"plan_hash", manifest.planHash}});
  disk::NewFile file(folder + "/" + part.file);
  file.write(header.data(), header.size());
  file.write(copy.data() + part.first, elements * sizeof(float));
  file.finish();
  return {part.file, file.bytes(), file.crc()};
}

std::vector<CheckpointFile>
CheckpointWriter::Impl::writeParts(const std::string &folder) {
  std::vector<CheckpointFile> files;
  std::error_code error;
  if (!parts.empty() || store)
    std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(
        fmt::format("cannot make folder '{}': {}", folder, error.message()));
  for (const Part &part : parts)
    files.push_back(writePart(folder, part));
  return files;
}

/// What a process wrote, or why it could not.
static std::string formatReport(const std::vector<CheckpointFile> &files,
                                const std::string &error) {
  nlohmann::json report;
  report["error"] = error;
  report["files"] = nlohmann::json::array();
  for (const CheckpointFile &file : files)
    report["files"].push_back({file.name, file.bytes, file.crc});
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns the error of the process that reports.
static std::string readReport(const std::string &text,
                              std::vector<CheckpointFile> &files) {
  nlohmann::json report = nlohmann::json::parse(text);
  for (const nlohmann::json &file : report.at("files"))
    files.push_back({file.at(0), file.at(1), file.at(2)});
  return report.at("error");
}

void CheckpointWriter::Impl::commit(const std::vector<std::string> &reports,
                                    CheckpointOutcome &outcome) {
  Manifest complete = manifest;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    std::string error = readReport(reports[rank], complete.files);
    if (error.empty())
      continue;
    // One report a rank, or one of a process that has all.
    if (reports.size() == 1 || int32_t(rank) == options.ranks.front())
      throw Error(error);
    outcome.failedRank = int32_t(rank);
    throw Error(fmt::format("rank {}: {}", rank, error));
  }
  std::sort(complete.files.begin(), complete.files.end(),
            [](const CheckpointFile &a, const CheckpointFile &b) {
              return a.name < b.name;
            });
  std::string folder = temporaryFolder(options, manifest.step);
  for (const CheckpointFile &file : complete.files) {
    std::error_code none;
    auto size = std::filesystem::file_size(folder + "/" + file.name, none);
    if (none || size != static_cast<uintmax_t>(file.bytes))
      throw Error(fmt::format("'{}' of another rank is not in '{}': all ranks "
                              "must see the same folder",
                              file.name, folder));
    outcome.bytes += Bytes(file.bytes);
  }
  outcome.path = store->commit(plan, std::move(complete));
}

CheckpointOutcome CheckpointWriter::Impl::write() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  CheckpointOutcome outcome;
  outcome.step = manifest.step;
  std::vector<CheckpointFile> files;
  try {
    files = writeParts(temporaryFolder(options, manifest.step));
  } catch (const std::exception &error) {
    outcome.error = error.what();
  }
  // A process that failed reports too, or the others would wait for it.
  try {
    std::vector<std::string> reports =
        gather.gather("checkpoint-" + std::to_string(manifest.step),
                      formatReport(files, outcome.error));
    if (store)
      commit(reports, outcome);
  } catch (const std::exception &error) {
    outcome.error = error.what();
    if (store)
      store->discard(manifest.step);
  }
  // An old one that cannot be removed is no fault of the new one.
  try {
    if (store && outcome.error.empty())
      store->removeOld();
  } catch (const std::exception &error) {
    outcome.warning = error.what();
  }
  outcome.time = (Clock::now() - begin) / std::chrono::nanoseconds(1);
  return outcome;
}

//===----------------------------------------------------------------------===//
// The public face
//===----------------------------------------------------------------------===//

CheckpointWriter::CheckpointWriter(const Plan &plan, CheckpointOptions options,
                                   StateMemory memory, Gather &gather)
    : impl(std::make_unique<Impl>(plan, std::move(options), std::move(memory),
                                  gather)) {}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::save(Manifest at) { impl->save(std::move(at)); }

void CheckpointWriter::wait() { impl->wait(); }

std::vector<CheckpointOutcome> CheckpointWriter::outcomes() {
  return impl->outcomes();
}

} // namespace takt::rt
