//===- LayerErrorsTest.cpp - mistakes in layers ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One model a mistake; the message, its line and its column.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

/// Eleven lines stand before the layers, so the first layer is line 12.
Messages errors(const std::string &layers) {
  return modelErrors("schema_version: 1\n"
                     "training: {global_batch: 4}\n"
                     "model:\n"
                     "  name: m\n"
                     "  inputs:\n"
                     "    x: {shape: [8, 6]}\n"
                     "    y: {shape: [8, 6]}\n"
                     "    ids: {shape: [8], dtype: int32, classes: 10}\n"
                     "    # a remark\n"
                     "\n"
                     "  layers:\n" +
                     layers);
}

TEST(LayerErrorsTest, UnknownKeyAndKind) {
  EXPECT_EQ(errors("  - linear: {input: x, otu: 3}\n"),
            (Messages{"12:24: unknown key 'otu' in 'linear'; did you mean "
                      "'out'?",
                      "12:5: 'linear' lacks 'out'"}));
  EXPECT_EQ(errors("  - liner: {input: x, out: 3}\n"),
            Messages{"12:5: unknown layer kind 'liner'; did you mean "
                     "'linear'?"});
  EXPECT_EQ(errors("  - gelu: {input: x, trainable: false}\n"),
            Messages{"12:22: unknown key 'trainable' in 'gelu'; known keys: "
                     "name, input"});
}

TEST(LayerErrorsTest, ItemShapes) {
  EXPECT_EQ(errors("  - linear: {input: x, out: 3}\n    out: 3\n"),
            Messages{"13:5: a layer has one key, its kind; indent 'out' deeper "
                     "to make it a setting of 'linear'"});
  EXPECT_EQ(errors("  - [gelu]\n"),
            Messages{"12:5: a layer must be its kind with settings, such as "
                     "'linear: {out: 128}'"});
  EXPECT_EQ(errors("  - linear: 5\n"),
            Messages{"12:13: 'linear' must be a map, not a value"});
  EXPECT_EQ(errors("  []\n"), Messages{"12:3: 'layers' must not be empty"});
  EXPECT_EQ(errors("  {linear: {out: 3}}\n"),
            Messages{"12:3: 'layers' must be a list, not a map"});
}

TEST(LayerErrorsTest, ReferenceToNothing) {
  EXPECT_EQ(errors("  - linear: {name: first, input: x, out: 6}\n"
                   "  - relu: {input: frist}\n"
                   "  - mean_squared_error: {target: z}\n"),
            (Messages{"13:19: 'input' names 'frist', which is neither an input "
                      "nor an earlier layer; did you mean 'first'?",
                      "14:34: 'target' names 'z', which is neither an input "
                      "nor an earlier layer"}));
  EXPECT_EQ(errors("  - relu: {input: late}\n"
                   "  - relu: {name: late}\n"
                   "  - mean_squared_error: {target: y}\n"),
            Messages{"12:19: 'input' names 'late', which is a later layer, or "
                     "one inside a repeat or residual"});
  EXPECT_EQ(errors("  - relu: {name: a}\n"),
            Messages{"12:5: 'relu' needs 'input': no layer stands before it"});
}

TEST(LayerErrorsTest, LayersOfARepeatAreOutOfReach) {
  EXPECT_EQ(errors("  - repeat:\n"
                   "      name: h\n"
                   "      input: x\n"
                   "      count: 2\n"
                   "      layers:\n"
                   "        - linear: {name: fc, out: 6}\n"
                   "  - add: {inputs: [h, fc]}\n"
                   "  - mean_squared_error: {target: y}\n"),
            Messages{"18:23: 'inputs' names 'fc', which is a later layer, or "
                     "one inside a repeat or residual"});
}

TEST(LayerErrorsTest, NameUsedTwice) {
  EXPECT_EQ(errors("  - relu: {name: a, input: x}\n"
                   "  - relu: {name: a}\n"),
            (Messages{"13:18: the name 'a' is used twice",
                      "note 12:18: first used here"}));
  EXPECT_EQ(errors("  - relu: {name: ids, input: x}\n"),
            (Messages{"12:18: the name 'ids' is used twice",
                      "note 8:5: first used here"}));
  EXPECT_EQ(
      errors("  - repeat:\n"
             "      name: h\n"
             "      input: x\n"
             "      count: 2\n"
             "      layers:\n"
             "        - residual: {layers: [linear: {name: f, out: 6}]}\n"
             "        - residual: {layers: [linear: {name: f, out: 6}]}\n"),
      (Messages{"18:46: the name 'h.*.f' is used twice",
                "note 17:46: first used here"}));
}

TEST(LayerErrorsTest, WrongShapes) {
  EXPECT_EQ(errors("  - linear: {input: x, out: 5}\n"
                   "  - add: {inputs: [linear1, x]}\n"),
            Messages{"13:5: layer 'add1': add needs two equal shapes, got [8, "
                     "5] and [8, 6]"});
  EXPECT_EQ(errors("  - linear: {input: x, out: 5}\n"
                   "  - mean_squared_error: {target: y}\n"),
            Messages{"13:34: layer 'mean_squared_error1': 'target' has shape "
                     "[8, 6], needed is [8, 5]"});
  EXPECT_EQ(errors("  - linear: {input: ids, out: 5}\n"),
            Messages{"12:5: layer 'linear1': linear needs a float32 input, got "
                     "int32"});
  EXPECT_EQ(errors("  - embedding: {input: x, vocab: 5, width: 5}\n"),
            Messages{"12:5: layer 'embedding1': embedding needs int32 ids of "
                     "shape [positions], got float32 [8, 6]"});
  // The first wrong shape is told, what follows from it is not.
  EXPECT_EQ(errors("  - add: {inputs: [x, ids]}\n"
                   "  - linear: {out: 5}\n"
                   "  - add: {inputs: [linear1, x]}\n")
                .size(),
            1u);
}

TEST(LayerErrorsTest, HeadsDoNotDivideTheWidth) {
  EXPECT_EQ(errors("  - attention: {name: attn, input: x, heads: 4}\n"),
            Messages{"12:46: 4 heads do not divide the width 6 of attention "
                     "'attn'"});
  EXPECT_EQ(errors("  - attention: {input: x, heads: 0}\n"),
            Messages{"12:34: 'heads' must be at least 1, not 0"});
}

TEST(LayerErrorsTest, GroupedAttention) {
  EXPECT_EQ(
      errors("  - attention: {name: a, input: x, heads: 3, kv_heads: 2}\n"),
      Messages{"12:56: 2 heads of keys and values do not divide the 3 "
               "heads of attention 'a'"});
  EXPECT_EQ(errors("  - attention: {input: x, heads: 2, rope_theta: 1e4}\n"),
            Messages{"12:49: heads of 3 elements cannot turn: 'rope_theta' "
                     "needs an even number"});
  EXPECT_EQ(errors("  - attention: {input: x, heads: 2, rope_theta: 0}\n"),
            Messages{"12:49: 'rope_theta' must be above 0 and at most "
                     "1000000000000, not 0"});
  EXPECT_EQ(
      errors("  - attention: {input: x, heads: 4096, head_dim: 524288}\n"),
      Messages{"12:5: the queries, keys and values of attention "
               "'attention1' are more than 2147483647 wide"});
}

TEST(LayerErrorsTest, GatedMlp) {
  EXPECT_EQ(errors("  - gated_mlp: {input: x}\n"),
            Messages{"12:5: 'gated_mlp' lacks 'width'"});
  EXPECT_EQ(
      errors("  - gated_mlp: {input: x, width: 8, activation: swish}\n"),
      Messages{"12:49: 'activation' must be one of silu, gelu, gelu_tanh, not "
               "'swish'"});
  EXPECT_EQ(errors("  - gated_mlp: {width: 8}\n"),
            Messages{"12:5: 'gated_mlp' needs 'input': no layer stands before "
                     "it"});
}

TEST(LayerErrorsTest, ResidualChangesTheShape) {
  EXPECT_EQ(errors("  - residual:\n"
                   "      input: x\n"
                   "      layers:\n"
                   "        - linear: {out: 5}\n"),
            Messages{"12:5: the residual's layers change the shape from [8, 6] "
                     "to [8, 5]; both sides of the sum need one shape"});
}

TEST(LayerErrorsTest, RepeatChangesTheShape) {
  EXPECT_EQ(errors("  - repeat:\n"
                   "      name: h\n"
                   "      input: x\n"
                   "      count: 2\n"
                   "      layers:\n"
                   "        - linear: {out: 5}\n"),
            Messages{"12:5: the blocks of repeat 'h' change the shape from [8, "
                     "6] to [8, 5]; each block's output is the next one's "
                     "input"});
}

TEST(LayerErrorsTest, RepeatCountAndNesting) {
  EXPECT_EQ(errors("  - repeat:\n"
                   "      input: x\n"
                   "      count: 0\n"
                   "      layers: [linear: {out: 6}]\n"),
            Messages{"14:14: 'count' must be at least 1, not 0"});
  EXPECT_EQ(errors("  - repeat:\n"
                   "      input: x\n"
                   "      count: 2\n"
                   "      layers:\n"
                   "        - repeat: {count: 2, layers: [relu]}\n"),
            Messages{"16:11: a repeat cannot stand inside a repeat"});
  EXPECT_EQ(errors("  - residual:\n"
                   "      input: x\n"
                   "      layers:\n"
                   "        - repeat: {count: 2, layers: [relu]}\n"),
            Messages{"15:11: a repeat cannot stand inside a residual"});
}

TEST(LayerErrorsTest, LossMissingOrNotLast) {
  EXPECT_EQ(errors("  - linear: {input: x, out: 5}\n"),
            (Messages{"12:5: the last layer must be a loss (cross_entropy or "
                      "mean_squared_error), not 'linear'",
                      "8:5: no layer reads the input 'ids'",
                      "7:5: no layer reads the input 'y'"}));
  EXPECT_EQ(errors("  - mean_squared_error: {name: l, input: x, target: y}\n"
                   "  - relu: {input: x}\n"
                   "  - relu\n"),
            (Messages{"12:5: the loss 'l' must be the last layer",
                      "note 13:5: this layer follows it"}));
  EXPECT_EQ(errors("  - residual:\n"
                   "      input: x\n"
                   "      layers:\n"
                   "        - mean_squared_error: {name: l, target: y}\n")
                .front(),
            "15:11: the loss 'l' stands inside a residual; it must be the last "
            "layer of the model");
}

TEST(LayerErrorsTest, OutputNeverUsed) {
  EXPECT_EQ(errors("  - embedding: {name: e, input: ids, vocab: 10, width: 6}\n"
                   "  - linear: {name: f, input: x, out: 6}\n"
                   "  - mean_squared_error: {target: y}\n"),
            Messages{"12:5: no layer reads the output of 'e'"});
}

TEST(LayerErrorsTest, BlockInputNeverUsed) {
  EXPECT_EQ(errors("  - embedding: {name: e, input: ids, vocab: 10, width: 6}\n"
                   "  - repeat:\n"
                   "      name: h\n"
                   "      count: 2\n"
                   "      layers: [linear: {input: x, out: 6}]\n"
                   "  - mean_squared_error: {target: y}\n"),
            Messages{"13:5: no layer of the repeat reads the input of the "
                     "block, 'h.in'"});
}

TEST(LayerErrorsTest, TooLarge) {
  EXPECT_EQ(errors("  - linear: {input: x, out: 99999999999}\n"),
            Messages{"12:29: 'out' must be at most 2147483647, not "
                     "99999999999"});
  EXPECT_EQ(errors("  - linear: {input: x, out: 2000000000}\n"
                   "  - linear: {name: b, out: 2000000000}\n"),
            Messages{"13:5: the parameter 'b.weight' of shape [2000000000, "
                     "2000000000] has more than 2^40 elements"});
  EXPECT_EQ(errors("  - repeat:\n"
                   "      name: h\n"
                   "      input: x\n"
                   "      count: 100000\n"
                   "      layers: [relu, relu]\n"
                   "  - embedding: {name: e, input: ids, vocab: 10, width: 6}\n"
                   "  - add: {inputs: [h, e]}\n"
                   "  - mean_squared_error: {target: y}\n"),
            Messages{"3:1: the model has 200003 layers with its repeats "
                     "unrolled; the limit is 100000"});
}

TEST(LayerErrorsTest, Ties) {
  const std::string head = "  - embedding: {name: tok, input: ids, vocab: 10, "
                           "width: 6}\n"
                           "  - relu: {name: act}\n";
  EXPECT_EQ(errors(head + "  - linear: {out: 10, tied: act}\n"),
            Messages{"14:29: 'tied' names the relu layer 'act', which has no "
                     "weight"});
  EXPECT_EQ(errors(head + "  - linear: {out: 10, tied: x}\n"),
            Messages{"14:29: 'tied' names 'x', which is an input and has no "
                     "weight"});
  EXPECT_EQ(errors(head + "  - linear: {out: 10, tied: tokk}\n"),
            Messages{"14:29: 'tied' names 'tokk', which is not an earlier "
                     "layer; did you mean 'tok'?"});
  EXPECT_EQ(errors(head + "  - linear: {name: f, out: 11, tied: tok}\n"),
            (Messages{"14:38: 'tok.weight' of shape [10, 6] cannot be the "
                      "weight of 'f', which needs shape [11, 6]",
                      "note 12:5: the weight is declared here"}));
  EXPECT_EQ(errors(head + "  - linear: {out: 10, tied: tok, init: zeros}\n"),
            Messages{"14:34: a tied weight takes its 'init' from the layer it "
                     "is tied to"});
}

TEST(LayerErrorsTest, Targets) {
  const std::string head = "  - linear: {name: f, input: x, out: 10}\n";
  EXPECT_EQ(errors(head + "  - cross_entropy: {name: l, target: y}\n"),
            Messages{"13:38: layer 'l': the target of cross_entropy must be "
                     "int32 class ids"});
  EXPECT_EQ(errors(head + "  - mean_squared_error: {name: l, target: ids}\n"),
            Messages{"13:43: layer 'l': the target of mean_squared_error must "
                     "be float32"});
  EXPECT_EQ(errors(head + "  - cross_entropy: {name: l}\n"),
            Messages{"13:5: 'cross_entropy' lacks 'target'"});
  EXPECT_EQ(
      errors("  - linear: {name: f, input: x, out: 9}\n"
             "  - cross_entropy: {name: l, target: ids}\n"),
      Messages{"13:38: the target 'ids' has 10 classes, but the logits of "
               "shape [8, 9] tell only 9 apart"});
  EXPECT_EQ(errors("  - embedding: {input: ids, vocab: 9, width: 6}\n"),
            Messages{"12:36: 'vocab' is 9, but the input 'ids' has 10 "
                     "classes"});
}

TEST(LayerErrorsTest, Initialisers) {
  auto init = [](const std::string &text) {
    Messages all =
        errors("  - linear: {input: x, out: 6, init: " + text + "}\n");
    return all.empty() ? "" : all.front();
  };
  const std::string needed = "12:38: 'init' must be normal(standard "
                             "deviation), uniform(half width), zeros or ones, "
                             "not ";
  EXPECT_EQ(init("xavier"), needed + "'xavier'");
  EXPECT_EQ(init("norml(0.1)"), needed + "'norml(0.1)'; did you mean "
                                         "'normal'?");
  EXPECT_EQ(init("normal"), needed + "'normal'; 'normal' needs a scale above "
                                     "0, such as 'normal(0.02)'");
  for (const char *text : {"normal()", "normal(-1)", "normal(0)", "normal(inf)",
                           "normal(nan)", "normal(1e9)", "normal(0.1",
                           "ones(1)", "uniform(0.1)x", "normal(0.1 )"})
    EXPECT_NE(init(text).find("12:38: 'init' must be"), std::string::npos)
        << text;
}

TEST(LayerErrorsTest, NothingToTrain) {
  EXPECT_EQ(modelErrors("schema_version: 1\n"
                        "training: {global_batch: 4}\n"
                        "model:\n"
                        "  name: m\n"
                        "  inputs: {x: {shape: [8]}, y: {shape: [4]}}\n"
                        "  layers:\n"
                        "    - linear: {input: x, out: 4, trainable: false}\n"
                        "    - mean_squared_error: {target: y}\n"),
            Messages{"3:1: every layer is frozen: there is nothing to train"});
}

TEST(LayerErrorsTest, Profiled) {
  EXPECT_EQ(errors("  - profiled: {forward: 3.4, backward: 2 GB, activation: "
                   "5 ms, parameters: 1 B, samples: 1}\n"),
            (Messages{"12:25: 'forward': '3.4' has no unit; write for example "
                      "'3.4 us' (units: ns, us, ms, s)",
                      "12:58: 'activation': '5 ms' is a time; a size in bytes "
                      "is needed, such as '4 GiB'",
                      "12:40: 'backward': '2 GB' is a size in bytes; a time is "
                      "needed, such as '4 us'"}));
  EXPECT_EQ(errors("  - profiled: {forward: 1 ms, activation: 1 B, samples: 1, "
                   "backward: 2 ms, input_grad: 1 ms}\n"),
            Messages{"12:60: 'backward' is the sum of 'input_grad' and "
                     "'weight_grad'; give either the sum or the parts"});
  EXPECT_EQ(errors("  - profiled: {forward: 1 ms, activation: 1 B, samples: 1, "
                   "input_grad: 1 ms}\n"),
            Messages{"12:5: 'profiled' lacks 'weight_grad'"});
  EXPECT_EQ(errors("  - profiled: {}\n"),
            (Messages{"12:5: 'profiled' lacks 'forward'",
                      "12:5: 'profiled' lacks 'activation'",
                      "12:5: 'profiled' lacks 'samples'",
                      "12:5: 'profiled' lacks 'backward'"}));
}

TEST(LayerErrorsTest, SeveralFaultsInOneRun) {
  EXPECT_EQ(errors("  - linear: {input: x, otu: 3}\n"
                   "  - attention: {heads: two}\n"
                   "  - gleu\n"
                   "  - linear: {out: 6, bias: no}\n"
                   "  - mean_squared_error: {target: why}\n")
                .size(),
            6u);
}

} // namespace
