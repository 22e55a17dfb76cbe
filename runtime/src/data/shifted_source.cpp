//===- shifted_source.cpp - samples from another place --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Wraps a source and moves the index.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/data/source.h"

namespace takt::rt {

namespace {
class ShiftedSource : public Source {
public:
  ShiftedSource(std::unique_ptr<Source> source, int64_t shift)
      : source(std::move(source)), shift(shift) {}

  void fill(const InputInfo &input, int64_t first, int64_t count,
            void *out) const override {
    source->fill(input, first + shift, count, out);
  }
  std::string describe() const override { return source->describe(); }

private:
  std::unique_ptr<Source> source;
  int64_t shift;
};
} // namespace

std::unique_ptr<Source> shiftedSource(std::unique_ptr<Source> source,
                                      int64_t shift) {
  return std::make_unique<ShiftedSource>(std::move(source), shift);
}

} // namespace takt::rt
