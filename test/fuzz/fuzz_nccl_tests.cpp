//===- fuzz_nccl_tests.cpp - what nccl-tests print ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Text that may be a table of all_reduce_perf or sendrecv_perf, its fit to a
// link, and the cluster file that the link comes into.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/calibrate/cluster_text.h"
#include "takt-rt/calibrate/nccl_tests.h"
#include "takt-rt/core/error.h"
#include "takt/Frontend/Read.h"

#include <cmath>

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {"#",
          "size",
          "time",
          "algbw",
          "busbw",
          "#wrong",
          "root",
          "sum",
          "-1",
          "0",
          "1e15",
          "1e308",
          "nan",
          "inf",
          "-0",
          "0x10",
          "18446744073709551616",
          "Collective",
          "starting:",
          "Rank",
          "Pid",
          "on",
          "all_reduce_perf",
          "sendrecv_perf",
          "all_gather_perf",
          "0:",
          "[1,0]<stdout>:",
          "\n",
          "\t",
          ">:"};
}

/// A link that was fitted is one that a cluster file can say.
static void checkFit(const rt::NcclTable &table, const rt::LinkFit &fit) {
  fuzz::require(std::isfinite(fit.latencyNanos) && fit.latencyNanos >= 0,
                "a latency is a time");
  fuzz::require(std::isfinite(fit.bytesPerSecond) && fit.bytesPerSecond > 0,
                "a bandwidth is more than nothing");
  fuzz::require(!(fit.error < 0), "an error is no less than nothing");
  rt::ClusterFigures figures;
  figures.name = "mutant";
  figures.device = "gpu";
  figures.flops = "1 TFLOP/s";
  figures.memoryBandwidth = "1 TB/s";
  figures.memory = "1 GB";
  figures.link = "link";
  figures.links["link"] = fit;
  rt::ClusterNodes node;
  node.devices = table.ranks;
  figures.nodes = {node};
  std::string text = rt::formatCluster(figures);
  Diagnostics diags;
  fuzz::require(readClusterText("mutant", text, diags).has_value(),
                "what is written of a link is read back: " + text);
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  try {
    rt::NcclTable table = rt::parseNcclTests(asText(bytes, size), "mutant");
    require(table.ranks >= 2, "a table is of two ranks at least");
    require(table.hosts >= 0 && !table.times.empty(),
            "a table is of some rows");
    for (const rt::TransferTime &time : table.times)
      require(time.bytes > 0 && time.nanos > 0 && std::isfinite(time.nanos),
              "a row is of some bytes and some time");
    rt::LinkFit fit;
    try {
      fit = rt::fitNcclTests(table);
    } catch (const rt::Error &error) {
      require(*error.what() != '\0', "a fit that fails says why");
      return 0;
    }
    checkFit(table, fit);
    return 1;
  } catch (const rt::Error &error) {
    checkRefusal(error.what(), "mutant");
    return 0;
  }
}
