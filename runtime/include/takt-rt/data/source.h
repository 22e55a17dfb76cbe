//===- source.h - where samples come from -----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sources of training samples. A sample is asked for by its global index
//     g = step * globalBatch + i,   i in [0, globalBatch),
// and depends on nothing else but the seed: not on stages, replicas or
// micro-batches. Micro-batch m of n samples holds i in [m n, (m + 1) n), and
// replica j of r takes its samples [j n / r, (j + 1) n / r).
//
// Text: a file of N bytes feeds byte-level language models with the int32
// inputs `tokens` and `targets` of shape [T]:
//     offset(g) = draw(streamKey(seed, "text"), g) mod (N - T)
//     tokens    = bytes[offset, offset + T)
//     targets   = bytes[offset + 1, offset + T + 1)
// with `draw` and `streamKey` as in data/random.h.
//
// Inference reads a text from its beginning to its end, window after window:
//     offset(g) = g T,   as long as the window and its targets lie in the text
//
// Synthetic: every input has its own stream, key = streamKey(seed, name).
// Element e of sample g, of E elements a sample, is at position c = g E + e:
// float32 normal(key, c); int32 draw(key, c) mod classes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <memory>
#include <optional>
#include <string>

namespace takt::rt {

/// Gives samples; may be asked by several threads at once.
class Source {
public:
  virtual ~Source() = default;
  /// Writes samples first ... first + count - 1 of an input, in 4-byte
  /// elements, row-major, sample by sample. `input` is one of the plan's.
  virtual void fill(const InputInfo &input, int64_t first, int64_t count,
                    void *out) const = 0;
  /// What the samples are taken from, so that another text is noticed when a
  /// run goes on: "text of 35149 bytes, crc32c 1a2b3c4d"; may be empty.
  virtual std::string describe() const { return ""; }
  /// Samples that there are; nothing where they never end.
  virtual std::optional<int64_t> size() const { return std::nullopt; }
};

/// True when all inputs are int32 and named `tokens` or `targets`: such a model
/// wants a text.
bool isTextModel(const Plan &plan);

/// Opens a text for a plan. Throws `Error` when the model is no text model, the
/// file cannot be read or has T + 1 bytes or fewer, or a byte lies outside the
/// classes an input declares.
std::unique_ptr<Source> openText(const Plan &plan, const std::string &path);

/// The same over bytes in memory; `name` is for messages.
std::unique_ptr<Source> textSource(const Plan &plan, std::string bytes,
                                   const std::string &name);

/// A source whose sample g is sample g + shift of another, for a run that goes
/// on with another global batch.
std::unique_ptr<Source> shiftedSource(std::unique_ptr<Source> source,
                                      int64_t shift);

/// Random samples. Throws `Error` when an int32 input declares no classes.
std::unique_ptr<Source> syntheticSource(const Plan &plan);

} // namespace takt::rt
