//===- TrainingErrorsTest.cpp - mistakes in training, data, inputs -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One file a mistake; the message, its line and its column.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

Messages errors(const std::string &training) {
  return modelErrors("schema_version: 1\n"
                     "model:\n"
                     "  name: m\n"
                     "  inputs: {x: {shape: [8]}, y: {shape: [4]}}\n"
                     "  layers:\n"
                     "    - linear: {input: x, out: 4}\n"
                     "    - mean_squared_error: {target: y}\n"
                     "training:\n" +
                     training);
}

TEST(TrainingErrorsTest, GoodOnes) {
  EXPECT_EQ(errors("  global_batch: 4\n"), Messages());
  EXPECT_EQ(errors("  {global_batch: 4, micro_batches: 2, seed: 7, optimizer: "
                   "{kind: momentum, learning_rate: 0.1, momentum: 0}}\n"),
            Messages());
}

TEST(TrainingErrorsTest, Batches) {
  EXPECT_EQ(errors("  global_batch: 32\n  micro_batches: 5\n"),
            Messages{"10:18: the 'global_batch' of 32 samples cannot be cut "
                     "into 5 equal 'micro_batches'"});
  EXPECT_EQ(errors("  micro_batches: 0\n"),
            (Messages{"8:1: 'training' lacks 'global_batch'",
                      "9:18: 'micro_batches' must be at least 1, not 0"}));
  EXPECT_EQ(errors("  {global_batch: 1e3, seed: -1}\n"),
            (Messages{"9:18: 'global_batch' must be an integer in plain "
                      "digits, not '1e3'",
                      "9:29: 'seed' must be at least 0, not -1"}));
}

TEST(TrainingErrorsTest, Optimizer) {
  EXPECT_EQ(errors("  global_batch: 4\n"
                   "  optimizer: {kind: adam, learning_rate: 0}\n"),
            (Messages{"10:21: 'kind' must be one of sgd, momentum, adamw, not "
                      "'adam'; did you mean 'adamw'?",
                      "10:42: 'learning_rate' must be above 0 and at most "
                      "1000000, not 0"}));
  EXPECT_EQ(errors("  global_batch: 4\n"
                   "  optimizer: {kind: sgd, learning_rate: 1, betas: [0, 0], "
                   "momentum: 0.9}\n"),
            (Messages{"10:59: 'momentum' is a setting of 'momentum', not of "
                      "'sgd'",
                      "10:44: 'betas' is a setting of 'adamw', not of 'sgd'"}));
  EXPECT_EQ(
      errors("  global_batch: 4\n"
             "  optimizer: {kind: adamw, learning_rate: 1, betas: [0.9]}\n"),
      Messages{"10:53: 'betas' must be 2 numbers, not 1"});
  EXPECT_EQ(errors("  global_batch: 4\n"
                   "  optimizer: {kind: adamw, learning_rate: 1, betas: [0.9, "
                   "1], epsilon: 0}\n"),
            (Messages{"10:72: 'epsilon' must be above 0 and at most 1, not 0",
                      "10:59: 'betas' must be at least 0 and below 1, not 1"}));
  EXPECT_EQ(errors("  global_batch: 4\n  optimizer: adamw\n"),
            Messages{"10:14: 'optimizer' must be a map, not a value"});
}

TEST(TrainingErrorsTest, Schedule) {
  auto schedule = [](const std::string &text) {
    return errors("  global_batch: 4\n  learning_rate_schedule: " + text +
                  "\n");
  };
  EXPECT_EQ(schedule("{kind: cosine}"),
            Messages{"10:3: 'learning_rate_schedule' lacks 'total_steps'"});
  EXPECT_EQ(schedule("{kind: linear, warmup_steps: 20, total_steps: 20}"),
            Messages{"10:73: 'total_steps' is 20, but must exceed the 20 "
                     "'warmup_steps'"});
  EXPECT_EQ(schedule("{kind: constant, total_steps: 20}"),
            Messages{"10:44: 'total_steps' is a setting of 'linear' and "
                     "'cosine', not of 'constant'"});
  EXPECT_EQ(schedule("{kind: cosine, total_steps: 20, minimum: 1}"),
            Messages{"10:68: 'minimum' is 1, above the learning rate 0.001"});
  EXPECT_EQ(schedule("{kind: constant, warmup_steps: 5}"), Messages());
}

Messages inputErrors(const std::string &inputs, const std::string &data) {
  return modelErrors("schema_version: 1\n"
                     "training: {global_batch: 4}\n"
                     "data: " +
                     data +
                     "\n"
                     "model:\n"
                     "  name: m\n"
                     "  inputs:\n" +
                     inputs +
                     "  layers:\n"
                     "    - linear: {input: x, out: 4}\n"
                     "    - mean_squared_error: {target: y}\n");
}

TEST(TrainingErrorsTest, Inputs) {
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: 4}\n",
                        "{kind: synthetic}"),
            Messages{"8:16: 'shape' must be a list, not '4'"});
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: []}\n",
                        "{kind: synthetic}"),
            Messages{"8:16: 'shape' must not be empty"});
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: [0]}\n",
                        "{kind: synthetic}"),
            Messages{"8:17: 'shape' must be at least 1, not 0"});
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]}\n",
                        "{kind: synthetic}"),
            Messages{"8:16: 'shape' has 9 dimensions; at most 8 are "
                     "supported"});
  EXPECT_EQ(inputErrors("    x: {shape: [2147483647, 2147483647, 8]}\n"
                        "    y: {shape: [4], dtype: float, classes: 3}\n",
                        "{kind: synthetic}"),
            (Messages{"7:16: the shape [2147483647, 2147483647, 8] has more "
                      "than 2^40 elements",
                      "8:28: 'dtype' must be one of float32, int32, not "
                      "'float'; did you mean 'float32'?",
                      "8:35: 'classes' is for int32 inputs only"}));
  EXPECT_EQ(inputErrors("    x: {shape: [8], dtype: int32}\n"
                        "    y: {shape: [4]}\n"
                        "    a b: {shape: [4]}\n",
                        "{kind: synthetic}")
                .size(),
            3u);
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y:\n",
                        "{kind: synthetic}"),
            (Messages{"8:5: input 'y' must be a map, not empty",
                      "11:36: 'target' names 'y', which is neither an input "
                      "nor an earlier layer"}));
}

TEST(TrainingErrorsTest, Data) {
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: [4]}\n",
                        "{kind: text}"),
            Messages{"3:14: data of kind 'text' needs exactly the inputs "
                     "'tokens' and 'targets', both int32 of one shape "
                     "[positions]"});
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: [4]}\n",
                        "{kind: txt}"),
            Messages{"3:14: 'kind' must be one of text, synthetic, not 'txt'; "
                     "did you mean 'text'?"});
  EXPECT_EQ(inputErrors("    x: {shape: [8]}\n"
                        "    y: {shape: [4]}\n",
                        "text"),
            Messages{"3:7: 'data' must be a map, not a value"});
}

} // namespace
