//===- text_source.cpp - samples from a text ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Byte-level text: every sample is a window of the file and the same window one
// byte on. The file is held in memory.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/data/source.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/data/init.h"
#include "takt-rt/data/random.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt {

namespace {
constexpr char kTokens[] = "tokens";
constexpr char kTargets[] = "targets";

class TextSource : public Source {
public:
  TextSource(std::string bytes, int64_t length, uint64_t seed)
      : bytes(std::move(bytes)), length(length), key(streamKey(seed, "text")) {}

  void fill(const InputInfo &input, int64_t first, int64_t count,
            void *out) const override {
    int64_t shift = input.name == kTargets ? 1 : 0;
    uint64_t windows = bytes.size() - length;
    auto *ids = static_cast<int32_t *>(out);
    for (int64_t g = first; g < first + count; ++g, ids += length) {
      const char *window = bytes.data() + draw(key, g) % windows + shift;
      for (int64_t t = 0; t < length; ++t)
        ids[t] = static_cast<unsigned char>(window[t]);
    }
  }

  std::string describe() const override {
    return fmt::format("text of {} bytes, crc32c {:08x}", bytes.size(),
                       crc32c(bytes));
  }

private:
  std::string bytes;
  int64_t length;
  uint64_t key;
};

/// One window behind the other, each once.
class TextInOrder : public Source {
public:
  /// `ahead`: bytes behind a window that go with it.
  TextInOrder(std::string bytes, int64_t length, int64_t ahead)
      : bytes(std::move(bytes)), length(length), ahead(ahead) {}

  void fill(const InputInfo &input, int64_t first, int64_t count,
            void *out) const override {
    const int64_t shift = input.name == kTargets ? 1 : 0;
    auto *ids = static_cast<int32_t *>(out);
    for (int64_t i = 0; i < count * length; ++i)
      ids[i] = static_cast<unsigned char>(bytes[first * length + shift + i]);
  }

  std::string describe() const override {
    return fmt::format("text of {} bytes, crc32c {:08x}", bytes.size(),
                       crc32c(bytes));
  }

  std::optional<int64_t> size() const override {
    return (int64_t(bytes.size()) - ahead) / length;
  }

private:
  std::string bytes;
  int64_t length, ahead;
};

void checkClasses(const InputInfo &input, const std::string &bytes,
                  const std::string &name) {
  if (input.classes <= 0)
    return;
  for (size_t i = 0; i < bytes.size(); ++i) {
    int value = static_cast<unsigned char>(bytes[i]);
    if (value >= input.classes)
      throw Error(fmt::format("text '{}' holds byte {} at offset {}, but input "
                              "'{}' has {} classes",
                              name, value, i, input.name, input.classes));
  }
}
} // namespace

bool isTextModel(const Plan &plan) {
  return !plan.inputs.empty() &&
         std::all_of(plan.inputs.begin(), plan.inputs.end(),
                     [](const InputInfo &input) {
                       return input.dtype == DType::Int32 &&
                              (input.name == kTokens || input.name == kTargets);
                     });
}

std::unique_ptr<Source> textSource(const Plan &plan, std::string bytes,
                                   const std::string &name) {
  for (const InputInfo &input : plan.inputs)
    if (input.dtype != DType::Int32 ||
        (input.name != kTokens && input.name != kTargets))
      throw Error(
          fmt::format("a text feeds the int32 inputs '{}' and '{}', but "
                      "model '{}' has the input '{}'",
                      kTokens, kTargets, plan.model, input.name));
  if (plan.inputs.empty())
    throw Error(fmt::format("model '{}' has no inputs", plan.model));
  int64_t length = elementCount(plan.inputs.front().shape);
  for (const InputInfo &input : plan.inputs)
    if (input.shape.size() != 1 || input.shape[0] != length || length < 1)
      throw Error(fmt::format("input '{}' does not have the shape [{}] that a "
                              "text of {} positions feeds",
                              input.name, length, length));
  const bool inOrder = plan.training.mode == Mode::Inference;
  const bool hasTargets =
      std::any_of(plan.inputs.begin(), plan.inputs.end(),
                  [](const InputInfo &i) { return i.name == kTargets; });
  const int64_t least = inOrder ? length + hasTargets : length + 2;
  if (int64_t(bytes.size()) < least)
    throw Error(fmt::format("text '{}' has {} bytes; windows of {} positions "
                            "need at least {}",
                            name, bytes.size(), length, least));
  for (const InputInfo &input : plan.inputs)
    checkClasses(input, bytes, name);
  if (inOrder)
    return std::make_unique<TextInOrder>(std::move(bytes), length, hasTargets);
  return std::make_unique<TextSource>(std::move(bytes), length,
                                      plan.training.seed);
}

std::unique_ptr<Source> openText(const Plan &plan, const std::string &path) {
  return textSource(plan, readFile(path), path);
}

} // namespace takt::rt
