//===- driver.cpp - the main program of a fuzz harness ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
//   fuzz-READER CORPUS [MUTANTS [NUMBER]]   all files of a folder, then mutants
//   fuzz-READER FILE                        one input again
//
// A mutant that breaks a promise is left in "fuzz-READER.input" in the current
// folder. The last line says what was done, for scripts.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "mutator.h"
#include "watch.h"

#include <fmt/format.h>
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;
using namespace takt::fuzz;

/// Small quarantines: what is freed shall not stand for what is used.
extern "C" const char *__asan_default_options() {
  return "quarantine_size_mb=16:max_allocation_size_mb=1024:detect_leaks=1:"
         "detect_stack_use_after_return=0";
}
extern "C" const char *__ubsan_default_options() {
  return "print_stacktrace=1:halt_on_error=1";
}

namespace {

std::string program;
std::string current; ///< the input at work

void saveInput() {
  std::string path = program + ".input";
  std::ofstream(path, std::ios::binary) << current;
  fmt::print(stderr, "{}: the input is left in '{}'\n", program, path);
}

std::string contentOf(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    fmt::print(stderr, "{}: cannot read '{}'\n", program, path.string());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Tally {
  size_t accepted = 0, refused = 0;
  uint64_t mostBranches = 0;
  size_t mostBytes = 0;

  bool run(std::string input) {
    current = std::move(input);
    // A copy of exactly this size, so that reading past its end is seen.
    std::vector<uint8_t> exact(current.begin(), current.end());
    beginInput();
    bool taken = fuzzOne(exact.data(), exact.size()) == 1;
    ++(taken ? accepted : refused);
    mostBranches = std::max(mostBranches, branches());
    mostBytes = std::max(mostBytes, peakBytes());
    return taken;
  }
};

int runCorpus(const fs::path &folder, size_t mutants, uint64_t number) {
  std::vector<fs::path> files;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  Tally tally;
  for (const fs::path &file : files) {
    seeds.push_back(contentOf(file));
    tally.run(seeds.back());
  }
  if (tally.accepted == 0) {
    fmt::print(stderr, "{}: no file of '{}' is good\n", program,
               folder.string());
    return 1;
  }
  Mutator mutator(std::move(seeds), dictionary(), number);
  tally = Tally();
  for (size_t i = 0; i < mutants; ++i) {
    bool taken = tally.run(mutator.next());
    if (reachedNewCode())
      mutator.keep(current, taken);
  }
  fmt::print("{}: {} mutants, {} accepted, {} refused, {} branches known, "
             "at most {} branches and {} bytes\n",
             program, mutants, tally.accepted, tally.refused, knownBranches(),
             tally.mostBranches, tally.mostBytes);
  // Mutants that are all refused, or none, would test one half only.
  return mutants == 0 || (tally.accepted > 0 && tally.refused > 0) ? 0 : 1;
}

} // namespace

void takt::fuzz::broken(const std::string &promise) {
  fmt::print(stderr, "{}: broken promise: {}\n", program, promise);
  saveInput();
  std::abort();
}

int main(int argc, char **argv) {
  program = fs::path(argv[0]).filename().string();
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: {} CORPUS [MUTANTS [NUMBER]] | {} FILE\n",
               program, program);
    return 2;
  }
  __sanitizer_set_death_callback(saveInput);
  startWatch();
  if (fs::is_directory(argv[1]))
    return runCorpus(argv[1], argc > 2 ? std::stoull(argv[2]) : 0,
                     argc > 3 ? std::stoull(argv[3]) : 1);
  Tally tally;
  bool taken = tally.run(contentOf(argv[1]));
  fmt::print("{}: {}, {} branches, {} bytes\n", program,
             taken ? "accepted" : "refused", tally.mostBranches,
             tally.mostBytes);
  return 0;
}
