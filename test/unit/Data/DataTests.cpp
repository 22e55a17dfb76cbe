//===- DataTests.cpp - samples and first values ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reproducibility of samples and parameters to the last bit, their independence
// of who asks for them, their distributions, and the texts that are refused.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/core/error.h"
#include "takt-rt/data/init.h"
#include "takt-rt/data/random.h"
#include "takt-rt/data/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace takt::rt {
namespace {

Plan textPlan(int64_t length, int64_t classes, uint64_t seed = 3) {
  Plan plan;
  plan.model = "lm";
  plan.inputs = {{"tokens", DType::Int32, {length}, classes},
                 {"targets", DType::Int32, {length}, classes}};
  plan.training.seed = seed;
  return plan;
}

std::vector<int32_t> ids(const Source &source, const InputInfo &input,
                         int64_t first, int64_t count) {
  std::vector<int32_t> out(count * input.shape[0]);
  source.fill(input, first, count, out.data());
  return out;
}

std::string randomBytes(size_t n) {
  std::string bytes;
  for (size_t i = 0; i < n; ++i)
    bytes.push_back(static_cast<char>(draw(9, i)));
  return bytes;
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

TEST(Random, KnownValues) {
  // Published check values of FNV-1a and SplitMix64.
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(draw(0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(draw(0, 1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(draw(0, 2), 0x06c45d188009454fu);
  EXPECT_EQ(streamKey(0, ""), 0xe220a8397b1dcdafu ^ 0xcbf29ce484222325u);
}

TEST(Random, NormalHasItsMoments) {
  constexpr int kCount = 200000;
  double sum = 0, squares = 0, fourth = 0;
  int beyondTwo = 0;
  for (int i = 0; i < kCount; ++i) {
    double x = normal(streamKey(1, "moments"), i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyondTwo += std::fabs(x) > 2;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(fourth / kCount, 3, 0.15);
  EXPECT_NEAR(double(beyondTwo) / kCount, 0.0455, 0.003);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

TEST(TextSource, FollowsTheDocumentedFormula) {
  int64_t length = 7;
  Plan plan = textPlan(length, 256);
  std::string bytes = randomBytes(1000);
  std::unique_ptr<Source> source = textSource(plan, bytes, "bytes");
  uint64_t key = streamKey(3, "text");
  for (int64_t g = 0; g < 50; ++g) {
    std::vector<int32_t> tokens = ids(*source, plan.inputs[0], g, 1);
    std::vector<int32_t> targets = ids(*source, plan.inputs[1], g, 1);
    uint64_t offset = draw(key, g) % (1000 - 7);
    for (int64_t t = 0; t < length; ++t) {
      EXPECT_EQ(tokens[t], static_cast<unsigned char>(bytes[offset + t]));
      EXPECT_EQ(targets[t], static_cast<unsigned char>(bytes[offset + t + 1]));
    }
  }
}

TEST(TextSource, SamplesDoNotDependOnHowTheyAreAskedFor) {
  Plan plan = textPlan(5, 0);
  std::unique_ptr<Source> source = textSource(plan, randomBytes(300), "bytes");
  std::vector<int32_t> all = ids(*source, plan.inputs[0], 0, 12);
  for (int64_t part : {1, 2, 3, 4, 6}) {
    std::vector<int32_t> joined;
    for (int64_t first = 0; first < 12; first += part) {
      std::vector<int32_t> some = ids(*source, plan.inputs[0], first, part);
      joined.insert(joined.end(), some.begin(), some.end());
    }
    EXPECT_EQ(joined, all) << "in parts of " << part;
  }
}

TEST(TextSource, ReachesEveryWindowAndNoByteBeyond) {
  // 10 bytes, windows of 7: offsets 0, 1 and 2.
  Plan plan = textPlan(7, 256);
  std::unique_ptr<Source> source = textSource(plan, "0123456789", "digits");
  std::set<int32_t> firsts, lasts;
  for (int64_t g = 0; g < 200; ++g) {
    firsts.insert(ids(*source, plan.inputs[0], g, 1).front());
    lasts.insert(ids(*source, plan.inputs[1], g, 1).back());
  }
  EXPECT_EQ(firsts, (std::set<int32_t>{'0', '1', '2'}));
  EXPECT_EQ(lasts, (std::set<int32_t>{'7', '8', '9'}));
}

TEST(TextSource, InferenceGoesThroughOnceInOrder) {
  Plan plan = textPlan(3, 256);
  plan.training.mode = Mode::Inference;
  // The last byte is a target alone.
  std::unique_ptr<Source> source = textSource(plan, "abcdefgh", "letters");
  EXPECT_EQ(source->size(), 2);
  EXPECT_EQ(ids(*source, plan.inputs[0], 0, 2),
            (std::vector<int32_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(ids(*source, plan.inputs[1], 1, 1),
            (std::vector<int32_t>{'e', 'f', 'g'}));
  plan.inputs.pop_back();
  EXPECT_EQ(textSource(plan, "abcdefghi", "letters")->size(), 3);
  EXPECT_EQ(textSource(plan, "abc", "letters")->size(), 1);
  EXPECT_THROW(textSource(plan, "ab", "letters"), Error);
  EXPECT_FALSE(textSource(textPlan(3, 256), "abcdefgh", "t")->size());
}

TEST(ShiftedSource, SamplesAreThoseFurtherOn) {
  Plan plan = textPlan(8, 0);
  std::string text = randomBytes(100);
  std::unique_ptr<Source> source = textSource(plan, text, "text");
  std::unique_ptr<Source> shifted =
      shiftedSource(textSource(plan, text, "text"), -3);
  EXPECT_EQ(ids(*shifted, plan.inputs[0], 5, 4),
            ids(*source, plan.inputs[0], 2, 4));
  EXPECT_EQ(shifted->describe(), source->describe());
  EXPECT_NE(source->describe(),
            textSource(plan, randomBytes(101), "text")->describe());
}

TEST(TextSource, SeedsDiffer) {
  Plan one = textPlan(5, 0, 1), two = textPlan(5, 0, 2);
  std::string bytes = randomBytes(1000);
  EXPECT_NE(ids(*textSource(one, bytes, "b"), one.inputs[0], 0, 20),
            ids(*textSource(two, bytes, "b"), two.inputs[0], 0, 20));
}

void expectRefusal(const Plan &plan, const std::string &bytes,
                   const std::string &text) {
  try {
    textSource(plan, bytes, "t.txt");
    FAIL() << "was accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::BadInput);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << error.what();
  }
}

TEST(TextSource, RefusesTextsThatDoNotFit) {
  expectRefusal(textPlan(7, 256), "12345678", "at least 9");
  expectRefusal(textPlan(7, 256), "", "0 bytes");
  EXPECT_NO_THROW(textSource(textPlan(7, 256), "123456789", "t.txt"));
  expectRefusal(textPlan(2, 128), "abcde\xe4 ", "byte 228 at offset 5");
  Plan plan = textPlan(4, 256);
  plan.inputs[1].shape = {5};
  expectRefusal(plan, "0123456789", "'targets'");
  plan = textPlan(4, 256);
  plan.inputs[1].name = "labels";
  expectRefusal(plan, "0123456789", "'labels'");
  EXPECT_FALSE(isTextModel(plan));
  EXPECT_TRUE(isTextModel(textPlan(4, 256)));
  plan = textPlan(4, 256);
  plan.inputs[0].dtype = DType::Float32;
  EXPECT_FALSE(isTextModel(plan));
  EXPECT_THROW(openText(textPlan(4, 256), "/nonexistent/text"), Error);
  EXPECT_THROW(openText(textPlan(4, 256), "/"), Error);
}

//===----------------------------------------------------------------------===//
// Synthetic
//===----------------------------------------------------------------------===//

TEST(SyntheticSource, FollowsTheDocumentedFormula) {
  Plan plan;
  plan.inputs = {{"x", DType::Float32, {2, 3}, 0},
                 {"class", DType::Int32, {}, 10}};
  plan.training.seed = 11;
  std::unique_ptr<Source> source = syntheticSource(plan);
  std::vector<float> x(12);
  source->fill(plan.inputs[0], 5, 2, x.data());
  for (int e = 0; e < 12; ++e)
    EXPECT_EQ(x[e], float(normal(streamKey(11, "x"), 5 * 6 + e)));
  std::vector<int32_t> classes(4);
  source->fill(plan.inputs[1], 5, 4, classes.data());
  for (int s = 0; s < 4; ++s)
    EXPECT_EQ(classes[s], int32_t(draw(streamKey(11, "class"), 5 + s) % 10));
}

TEST(SyntheticSource, RefusesIdsWithoutClasses) {
  Plan plan;
  plan.inputs = {{"class", DType::Int32, {4}, 0}};
  EXPECT_THROW(syntheticSource(plan), Error);
}

//===----------------------------------------------------------------------===//
// First values
//===----------------------------------------------------------------------===//

TEST(InitParam, HasTheAskedDistribution) {
  Param param{"h.0.weight", {200, 300}, InitKind::Normal, 0.02, true};
  std::vector<float> values = initParam(param, 4);
  ASSERT_EQ(values.size(), 60000u);
  double sum = 0, squares = 0;
  for (float v : values) {
    sum += v;
    squares += double(v) * v;
  }
  EXPECT_NEAR(sum / 60000, 0, 4e-4);
  EXPECT_NEAR(std::sqrt(squares / 60000), 0.02, 4e-4);
  EXPECT_EQ(values[7], float(0.02 * normal(streamKey(4, "h.0.weight"), 7)));

  param.init = InitKind::Uniform;
  param.initScale = 0.5;
  sum = squares = 0;
  for (float v : initParam(param, 4)) {
    ASSERT_LE(std::fabs(v), 0.5f);
    sum += v;
    squares += double(v) * v;
  }
  EXPECT_NEAR(sum / 60000, 0, 0.006);
  EXPECT_NEAR(squares / 60000, 0.25 / 3, 0.002);

  param.init = InitKind::Ones;
  EXPECT_EQ(initParam(param, 4), std::vector<float>(60000, 1.0f));
  param.init = InitKind::Zeros;
  EXPECT_EQ(initParam(param, 4), std::vector<float>(60000, 0.0f));
}

TEST(InitParam, DependsOnNameAndSeedOnly) {
  Param a{"a", {50}, InitKind::Normal, 1, true};
  Param b{"b", {50}, InitKind::Normal, 1, true};
  EXPECT_EQ(initParam(a, 1), initParam(a, 1));
  EXPECT_NE(initParam(a, 1), initParam(b, 1));
  EXPECT_NE(initParam(a, 1), initParam(a, 2));
}

TEST(ElementCount, RefusesOverflow) {
  EXPECT_EQ(elementCount({}), 1);
  EXPECT_EQ(elementCount({3, 0, 5}), 0);
  EXPECT_THROW(elementCount({int64_t(1) << 40, int64_t(1) << 40}), Error);
  EXPECT_THROW(elementCount({-1}), Error);
}

} // namespace
} // namespace takt::rt
