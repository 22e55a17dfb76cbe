//===- gather.h - agreement of the processes of a run -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is whole when every process has written its part. Each reports
// what it wrote, and one of them, which commits, gets all reports.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace takt::rt {

class Gather {
public:
  virtual ~Gather() = default;
  /// True on the one process that commits.
  virtual bool commits() const = 0;
  /// Gives a report on a topic, once a topic; the process that commits gets
  /// those of all processes, itself among them, the others nothing. May be
  /// called from another thread than the one that trains. Throws `Error` when
  /// one of them does not report in time.
  virtual std::vector<std::string> gather(const std::string &topic,
                                          const std::string &report) = 0;
};

/// All ranks are threads of this process.
class GatherHere final : public Gather {
public:
  bool commits() const override { return true; }
  std::vector<std::string> gather(const std::string &,
                                  const std::string &report) override {
    return {report};
  }
};

} // namespace takt::rt
