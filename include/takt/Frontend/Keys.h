//===- Keys.h - the keys of the YAML files ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one list of the keys that each map of a file may hold, and of the words
// that some values are limited to. Readers refuse what is not in it, hints come
// from it, and a test compares it with the JSON Schemas, whose `$defs` bear the
// same names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace takt {

/// The keys of one kind of map, or the words of one kind of value.
struct KeyTable {
  std::string name; ///< of the `$defs` entry in the schema
  std::vector<std::string> keys;
};

/// Maps of each file; the first is the top level.
const std::vector<KeyTable> &modelKeys();
const std::vector<KeyTable> &clusterKeys();
const std::vector<KeyTable> &profileKeys();

/// Values that are one of a few words (in model files only).
const std::vector<KeyTable> &modelWords();

/// The table of that name; it must exist.
const KeyTable &keyTable(const std::vector<KeyTable> &tables,
                         std::string_view name);

} // namespace takt
