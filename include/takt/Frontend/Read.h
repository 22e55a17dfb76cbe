//===- Read.h - reading model, cluster and profile files --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The door of the frontend. Each function reports every fault it finds, with
// line and column, and gives a spec only if there was none. The `...Text` forms
// read from memory; `file` is then only the name shown in messages.
//
// The keys of the files are described in docs/reference/yaml.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Spec.h"
#include "takt/Support/Diagnostic.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace takt {

/// Limits of a model, so that its sums stay inside their types.
constexpr int64_t kMaxElements = int64_t(1) << 40; ///< of one tensor
constexpr int64_t kMaxLayers = 100000;             ///< repeats unrolled
constexpr int64_t kMaxMicroBatches = 65535;
constexpr int64_t kMaxDevices = int64_t(1) << 20; ///< of a cluster

/// "-" reads standard input.
std::optional<ModelSpec> readModel(const std::string &path, Diagnostics &diags);
std::optional<ModelSpec> readModelText(const std::string &file,
                                       std::string text, Diagnostics &diags);

/// A cluster file, or the name of a preset where no such file exists.
std::optional<ClusterSpec> readCluster(const std::string &pathOrPreset,
                                       Diagnostics &diags);
std::optional<ClusterSpec>
readClusterText(const std::string &file, std::string text, Diagnostics &diags);

std::optional<ProfileSpec> readProfile(const std::string &path,
                                       Diagnostics &diags);
std::optional<ProfileSpec>
readProfileText(const std::string &file, std::string text, Diagnostics &diags);

/// Names of the built-in clusters: "host-2core", "a100-8", ... Those with a
/// network also stand for N nodes as NAME + "xN" ("h100-8x4").
std::vector<std::string> presetNames();
/// The YAML text of a preset (without "xN"), as in examples/clusters; empty if
/// there is none of that name.
std::string_view presetText(std::string_view name);

} // namespace takt
