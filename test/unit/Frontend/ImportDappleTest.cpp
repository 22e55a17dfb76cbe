//===- ImportDappleTest.cpp - published layer profiles -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Totals and order of the imported chains against an independent script's.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/ImportDapple.h"

#include "Messages.h"
#include "takt/Support/TextFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace takt;
using namespace takt::test;

namespace {

class ImportDappleTest : public testing::TestWithParam<const char *> {};

TEST_P(ImportDappleTest, TotalsAndOrder) {
  std::string folder = std::string(TAKT_TEST_DATA) + "/dapple/";
  std::string path = folder + GetParam() + ".txt";
  Diagnostics diags;
  auto text = readTextFile(path, diags);
  ASSERT_TRUE(text) << diags.text();
  ImportDappleOptions options;
  if (path.find("pbs") == std::string::npos)
    options.samples = 32;
  auto yaml = importDapple(*text, path, options, diags);
  ASSERT_TRUE(yaml) << diags.text();
  auto spec = readModelText("imported.yaml", *yaml, diags);
  ASSERT_TRUE(spec) << diags.text();
  EXPECT_EQ(buildGraph(*spec).check().value_or(""), "");

  std::ifstream in(folder + "expected-exact-" + GetParam() + ".json");
  nlohmann::json expected = nlohmann::json::parse(in);
  double forward = 0, backward = 0, parameters = 0, activation = 0, largest = 0;
  std::vector<std::string> order;
  for (const ItemSpec &item : spec->items) {
    const ProfiledCost &cost = item.layer.profiled;
    forward += cost.forward;
    backward += cost.inputGrad + cost.weightGrad;
    largest = std::max(largest,
                       double(cost.forward + cost.inputGrad + cost.weightGrad));
    parameters += cost.parameters;
    activation += cost.activation;
    order.push_back(item.layer.name.substr(0, item.layer.name.find('_')));
  }
  EXPECT_EQ(order, expected["order"].get<std::vector<std::string>>());
  EXPECT_NEAR(forward / 1e6, expected["total_forward_ms"], 1e-9);
  EXPECT_NEAR(backward / 1e6, expected["total_backward_ms"], 1e-9);
  EXPECT_NEAR(largest / 1e6, expected["largest_node_ms"], 1e-9);
  EXPECT_EQ(parameters, expected["total_parameter_bytes"].get<double>());
  EXPECT_EQ(activation, expected["total_activation_bytes"].get<double>());
  EXPECT_EQ(spec->training.microBatches, 8);
  EXPECT_EQ(spec->training.microBatchSize(),
            spec->items[0].layer.profiled.samples);
}

INSTANTIATE_TEST_SUITE_P(Profiles, ImportDappleTest,
                         testing::Values("vgg-19-pbs-32", "bert-24-pbs-6",
                                         "gnmt-16-pbs-64", "xlnet-24-pbs-1",
                                         "amoeba-6-pbs-8-simplified",
                                         "amoeba-18-pbs-8", "vgg16"),
                         [](const auto &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             c = c == '-' ? '_' : c;
                           return name;
                         });

const std::string kCosts = "forward_compute_time=1.5, backward_compute_time=2, "
                           "activation_size=[8; 4.0], parameter_size=3";

Messages importErrors(const std::string &text, const std::string &file,
                      ImportDappleOptions options = {}) {
  Diagnostics diags;
  bool done = importDapple(text, file, options, diags).has_value();
  Messages messages = render(diags);
  if (done == diags.hasErrors())
    messages.push_back("result and errors disagree");
  return messages;
}

TEST(ImportDappleTextTest, WritesReadableYaml) {
  Diagnostics diags;
  auto yaml = importDapple("node1 -- Input -- " + kCosts + "\n" +
                               "node10 -- b -- c(x=1) -- " + kCosts + "\r\n" +
                               "node9 -- a -- " + kCosts + "\n\n" +
                               "    node1 -- node9\n\tnode9 -- node10\n",
                           "some/dir/net-pbs-2.txt", {}, diags);
  ASSERT_TRUE(yaml) << diags.text();
  EXPECT_EQ(*yaml,
            "# Imported from the layer profile 'net-pbs-2.txt': measured for 2 "
            "samples;\n"
            "# inputs dropped, the graph put into one chain.\n"
            "schema_version: 1\n"
            "model:\n"
            "  name: net-pbs-2\n"
            "  layers:\n"
            "    - profiled: {name: node9_a, forward: 1.5 ms, backward: 2 ms, "
            "activation: 12 B, parameters: 3 B, samples: 2}\n"
            "    - profiled: {name: node10_b_--_c_x_1, forward: 1.5 ms, "
            "backward: 2 ms, activation: 12 B, parameters: 3 B, samples: 2}\n"
            "training:\n"
            "  global_batch: 16\n"
            "  micro_batches: 8\n");
  EXPECT_TRUE(readModelText("m.yaml", *yaml, diags)) << diags.text();
}

TEST(ImportDappleTextTest, Samples) {
  EXPECT_EQ(importErrors("node1 -- a -- " + kCosts, "vgg16.txt"),
            Messages{"0:0: the number of samples is not known: the file name "
                     "has no 'pbs-N'; give --samples"});
  EXPECT_EQ(importErrors("node1 -- a -- " + kCosts, "vgg16.txt", {4, 8}),
            Messages());
  EXPECT_EQ(importErrors("node1 -- a -- " + kCosts, "x", {0, 8}),
            Messages{"0:0: 8 micro-batches of 0 samples are out of range"});
  EXPECT_EQ(importErrors("node1 -- a -- " + kCosts, "x", {1000000000, 8}),
            Messages{"0:0: 8 micro-batches of 1000000000 samples are out of "
                     "range"});
}

TEST(ImportDappleTextTest, MalformedLines) {
  auto errors = [](const std::string &text) {
    return importErrors(text, "f-pbs-1");
  };
  EXPECT_EQ(errors("hello\n"),
            (Messages{"1:1: expected 'nodeN -- description -- costs' or 'nodeN "
                      "-- nodeM'"}));
  EXPECT_EQ(errors("nodeX -- a -- " + kCosts),
            Messages{"1:1: 'nodeX' is not a node such as 'node12'"});
  EXPECT_EQ(errors("node1 -- a\n"),
            Messages{"1:10: expected a node such as 'node12' or 'description "
                     "-- costs', not 'a'"});
  EXPECT_EQ(errors("node1 -- a -- forward_compute_time=x, "
                   "backward_compute_time=-1, activation_size=[1; 2, "
                   "parameter_size=1e30\n"),
            (Messages{"1:36: 'x' is not a number", "1:61: '-1' is out of range",
                      "1:81: the list lacks its ']'",
                      "1:103: '1e30' is out of range"}));
  EXPECT_EQ(errors("node1 -- a -- forward_compute_time=1, forward_compute_time"
                   "=1\n"),
            Messages{"1:39: 'forward_compute_time' is given twice"});
  EXPECT_EQ(
      errors("node1 -- a -- " + kCosts + "\nnode1 -- b -- " + kCosts),
      (Messages{"2:1: 'node1' is given twice", "note 1:1: first given here"}));
  EXPECT_EQ(errors("node1 -- a -- " + kCosts + "\n  node1 -- node2\n"),
            Messages{"2:12: there is no 'node2'"});
  EXPECT_EQ(errors("node1 -- a -- " + kCosts + ", color=red\n"),
            Messages{"1:110: unknown key 'color'"});
  EXPECT_EQ(errors("node1 -- a -- forward_compute_time=1, "
                   "backward_compute_time=2, activation_size=1e15, "
                   "parameter_size=3\n"),
            Messages{"1:1: the profile does not make a model: the output of "
                     "layer 'node1_a', shape [250000000000000], has more than "
                     "2^40 elements a sample"});
  EXPECT_EQ(errors(""), Messages{"1:1: the file is empty"});
  EXPECT_EQ(errors("node1 -- Input -- " + kCosts),
            Messages{"1:1: the profile has no layers"});
}

TEST(ImportDappleTextTest, Cycles) {
  EXPECT_EQ(importErrors("node1 -- a -- " + kCosts + "\nnode2 -- b -- " +
                             kCosts + "\nnode3 -- c -- " + kCosts +
                             "\nnode1 -- node2\nnode2 -- node3\nnode3 -- "
                             "node2\n",
                         "f-pbs-1"),
            Messages{"2:1: 'node2' lies on a cycle or behind one"});
  EXPECT_EQ(
      importErrors("node1 -- a -- " + kCosts + "\nnode1 -- node1\n", "f-pbs-1"),
      Messages{"1:1: 'node1' lies on a cycle or behind one"});
}

} // namespace
