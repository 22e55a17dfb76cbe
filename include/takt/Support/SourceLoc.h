//===- SourceLoc.h - a place in an input file -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The place that every checked value carries, so that a later step (a pass, the
// partitioner) can still point at the line that caused its complaint.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace takt {

/// A place in an input file; lines and columns count from 1, 0 = unknown.
/// Columns count bytes.
struct SourceLoc {
  std::string file;
  int line = 0, column = 0;
};

} // namespace takt
