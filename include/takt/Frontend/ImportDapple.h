//===- ImportDapple.h - published layer profiles as models ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads the text format of the PipeDream profiler (Narayanan et al., SOSP 2019,
// arXiv 1806.03377), in which also the profiles of DAPPLE (Fan et al., PPoPP
// 2021, arXiv 2007.01045) are published, and writes a model of `profiled`
// layers as YAML that people can read and change:
//
//     node2 -- Conv2d -- forward_compute_time=3.4, backward_compute_time=6.8,
//         activation_size=384000000.0, parameter_size=6835.0    (one line)
//         node2 -- node3                                        (an edge)
//
// Times are milliseconds and sizes bytes, for the profiled number of samples.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Support/Diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>

namespace takt {

struct ImportDappleOptions {
  /// Samples the profile was taken with; if not given, the number after "pbs"
  /// in the file name ("vgg-19-pbs-32.txt"), which must then be there.
  std::optional<int64_t> samples;
  int64_t microBatches = 8; ///< the global batch is this times the samples
};

/// The model as YAML text for `readModel`: sources called "Input..." and sinks
/// called "__getitem__..." are dropped, the other nodes become one chain in
/// topological order, smallest node number first. An activation list "[a; b]"
/// is summed. Faults are reported with line and column; a cycle is one.
std::optional<std::string> importDapple(const std::string &text,
                                        const std::string &fileName,
                                        const ImportDappleOptions &options,
                                        Diagnostics &diags);

} // namespace takt
