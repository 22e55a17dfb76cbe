//===- text_parser.h - text to plan -----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads what text_writer.cpp writes. Statements may stand in any order as long
// as a name is declared before it is used, except roles in channels and groups
// and lanes in waits, which are looked up once all are known.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/names.h"
#include "takt-rt/core/plan.h"

#include "text_scanner.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace takt::rt {

/// Positions of names, for lookups in constant time a use.
using NameIndex = std::map<std::string, size_t>;

class TextParser {
public:
  TextParser(std::string_view text, const std::string &file) : in(text, file) {}
  Plan parse();

private:
  template <typename Enum>
  Enum value(const char *what) {
    size_t at = in.position();
    std::string_view word = in.word(what);
    if (auto known = valueOf<Enum>(word))
      return *known;
    in.failAt(at, fmt::format("unknown {} '{}'", what, word));
  }
  template <typename T, typename One>
  std::vector<T> sequence(std::string_view open, std::string_view close,
                          One one) {
    std::vector<T> items;
    in.expect(open);
    if (in.accept(close))
      return items;
    do
      items.push_back(one());
    while (in.accept(","));
    in.expect(close);
    return items;
  }
  template <typename T>
  std::vector<T> integers() {
    return sequence<T>("[", "]", [&] { return in.integer<T>(); });
  }
  void add(NameIndex &index, const std::string &name, size_t at,
           const char *what) {
    if (!index.emplace(name, index.size()).second)
      in.failAt(at, fmt::format("a second {} '{}'", what, name));
  }
  size_t find(const NameIndex &index, const std::string &name, size_t at,
              const char *what) {
    auto entry = index.find(name);
    if (entry == index.end())
      in.failAt(at, fmt::format("no {} '{}'", what, name));
    return entry->second;
  }
  size_t use(const NameIndex &index, const char *what) {
    size_t at = in.position();
    return find(index, in.name(what), at, what);
  }

  /// A 16-bit field that holds the index of a name declared later.
  struct Later {
    std::string name;
    size_t at;
  };
  Later later(const char *what) {
    size_t at = in.position();
    return {in.name(what), at};
  }

  bool headerStatement();
  void training();
  void modelStatement();
  Link link();
  void channel();
  void group();
  void nodes();
  void role();
  bool roleStatement(Role &role);
  void pool(Role &role);
  BufferRef buffer();
  std::vector<BufferRef> bufferList();
  Endpoint endpoint(const NameIndex &index, const char *what);
  void procedure(Role &role);
  void lane(Role &role);
  Instr instr(Lane &lane);
  void resolveWaits(Role &role);
  void resolveRoles();

  TextScanner in;
  Plan plan;
  NameIndex params, channels, groups, roles, pools, lanes;
  std::map<std::pair<int32_t, std::string>, size_t> procedures;
  std::vector<std::pair<Later, Later>> channelEnds;
  std::vector<Later> groupRoles;
  std::vector<std::vector<Later>> waitLanes; ///< of the role being read
};

} // namespace takt::rt
