//===- ProfileTest.cpp - measured costs --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What `takt-run --profile` writes is read back; one file a mistake.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

TEST(ProfileTest, Reads) {
  Diagnostics diags;
  auto spec = readProfileText(
      "p.yaml",
      "schema_version: 1\n"
      "profile:\n"
      "  device: Some CPU @ 2.0 GHz\n"
      "  samples: 4\n"
      "  layers:\n"
      "    tok: {forward: 123 ns, input_grad: 0 ns, weight_grad: 4 us, update: "
      "8 us}\n"
      "    h.0.attn.qkv: {forward: 1 us, input_grad: 2 us, weight_grad: 3 us, "
      "update: 4 us}\n",
      diags);
  ASSERT_TRUE(spec) << diags.text();
  EXPECT_EQ(spec->device, "Some CPU @ 2.0 GHz");
  EXPECT_EQ(spec->samples, 4);
  ASSERT_EQ(spec->layers.size(), 2u);
  EXPECT_EQ(spec->layers.at("tok").forward, 123);
  EXPECT_EQ(spec->layers.at("tok").update, 8000);
  EXPECT_EQ(spec->layers.at("h.0.attn.qkv").weightGrad, 3000);
  EXPECT_EQ(spec->places.at("profile.layers.tok.forward").line, 6);
}

TEST(ProfileTest, Errors) {
  EXPECT_EQ(profileErrors("schema_version: 1\n"
                          "profile: {device: host, samples: 0, layers: {tok: "
                          "{forward: 1, input_grad: 0 ns, update: 8 B}}}\n"),
            (Messages{"2:34: 'samples' must be at least 1, not 0",
                      "2:61: 'forward': '1' has no unit; write for example '1 "
                      "us' (units: ns, us, ms, s)",
                      "2:46: layer 'tok' lacks 'weight_grad'",
                      "2:90: 'update': '8 B' is a size in bytes; a time is "
                      "needed, such as '4 us'"}));
  EXPECT_EQ(profileErrors("schema_version: 1\nprofile: {device: host, samples: "
                          "1, layers: {}}\n"),
            Messages{"2:45: 'layers' must not be empty"});
  EXPECT_EQ(profileErrors("schema_version: 1\n"),
            Messages{"1:1: the file lacks 'profile'"});
}

} // namespace
