//===- plan_checks.cpp - what an accepted plan must be -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plans are compared by their binary form, of which equal plans have equal
// bytes.
//
//===----------------------------------------------------------------------===//
#include "plan_checks.h"

#include "fuzz.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/names.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/text.h"

namespace takt::fuzz {

using namespace takt::rt;

void checkAccepted(const Plan &plan) {
  for (const std::string &fault : checkStructure(plan))
    broken("an accepted plan is sound, but: " + fault);
  std::vector<uint8_t> bytes = serialize(plan);
  require(serialize(deserialize(bytes, "again")) == bytes,
          "the binary form is read back as it was written");
  std::string text = toText(plan);
  Plan again = parsePlanText(text, "again");
  require(serialize(again) == bytes, "the text form keeps the whole plan");
  require(toText(again) == text, "the text form is read back as it is written");
  Summary summary = summarize(plan);
  require(!printText(summary).empty() && !toJson(summary).empty(),
          "a sound plan has a report");
  Proof proof = prove(plan);
  require(!proofText(proof).empty(), "the proof says what it found");
  try {
    SimulateOptions options;
    options.keepRecords = false;
    require(simulate(plan, options).makespan >= 0, "time runs forward");
  } catch (const Error &error) {
    require(*error.what() != 0, "the clock says why a plan cannot run");
    require(!proof.holds(), "a proven plan runs to its end");
  }
}

void checkRefusal(const std::string &message, const std::string &name) {
  require(message.find(name + ":") == 0 || message.find("'" + name + "'") == 0,
          "a refusal names the file: " + message);
  require(message.size() > name.size() + 4 &&
              message.find('\n') == std::string::npos,
          "a refusal is one sentence: " + message);
}

template <typename Enum>
static void addWords(std::vector<std::string> &words) {
  NameTable table = namesOf<Enum>();
  for (size_t i = 0; i < table.size; ++i)
    words.emplace_back(table.names[i]);
}

std::vector<std::string> planWords() {
  std::vector<std::string> words = {"takt-plan 1.0",
                                    "feature",
                                    "training {",
                                    "role",
                                    "pool",
                                    "procedure",
                                    "kernel",
                                    "lane",
                                    "channel",
                                    "group",
                                    "param",
                                    "input",
                                    "layer",
                                    "after",
                                    "->",
                                    "link",
                                    "slots",
                                    "load",
                                    "update",
                                    "capacity",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    "\"",
                                    "#",
                                    "+0",
                                    ":1",
                                    "@",
                                    "\n"};
  addWords<PoolKind>(words);
  addWords<KernelKind>(words);
  addWords<Phase>(words);
  addWords<LaneKind>(words);
  addWords<InstrKind>(words);
  addWords<ChannelKind>(words);
  addWords<DType>(words);
  addWords<InitKind>(words);
  addWords<OptimizerKind>(words);
  addWords<LrSchedule>(words);
  return words;
}

} // namespace takt::fuzz
