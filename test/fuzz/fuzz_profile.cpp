//===- fuzz_profile.cpp - profile files ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// YAML that may be a profile file.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "yaml_checks.h"

#include "takt/Frontend/Read.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() { return yamlWords(profileKeys()); }

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  std::string text = asText(bytes, size);
  Diagnostics diags;
  std::optional<ProfileSpec> spec = readProfileText("mutant", text, diags);
  if (!spec) {
    checkRefusal(diags, "mutant", text);
    return 0;
  }
  require(!diags.hasErrors(), "what is accepted has no faults");
  require(spec->samples >= 1, "a profile is of some samples");
  for (const auto &[name, entry] : spec->layers)
    require(!name.empty() && entry.forward >= 0 && entry.inputGrad >= 0 &&
                entry.weightGrad >= 0 && entry.update >= 0,
            "layers have names and no negative times");
  return 1;
}
