//===- fuzz_dapple.cpp - published layer profiles ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Text that may be a profile of the PipeDream profiler. What the importer
// writes must be a model that the model reader takes.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "yaml_checks.h"

#include "takt/Frontend/ImportDapple.h"
#include "takt/Frontend/Read.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {"node1",
          "node",
          " -- ",
          "--",
          "forward_compute_time=",
          "backward_compute_time=",
          "activation_size=",
          "parameter_size=",
          ", ",
          "[1.0; 2.0]",
          ";",
          "Input0",
          "__getitem__(0)",
          "\n\tnode1 -- node2",
          "1e18",
          "nan",
          "\t",
          "\r\n",
          "\xff"};
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  std::string text = asText(bytes, size);
  ImportDappleOptions options;
  options.samples = 4;
  Diagnostics diags;
  std::optional<std::string> yaml =
      importDapple(text, "mutant", options, diags);
  if (!yaml) {
    checkRefusal(diags, "mutant", text);
    return 0;
  }
  require(!diags.hasErrors(), "what is accepted has no faults");
  Diagnostics again;
  std::optional<ModelSpec> spec = readModelText("imported", *yaml, again);
  if (!spec)
    broken("an imported model is a good model file, but: " + again.text());
  if (std::optional<std::string> fault = buildGraph(*spec).check())
    broken("an imported model is a sound graph, but: " + *fault);
  return 1;
}
