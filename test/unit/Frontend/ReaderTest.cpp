//===- ReaderTest.cpp - typed values -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a scalar may look like, key by key, seen through small model files.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Reader.h"

#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

YamlNode plain(const std::string &text, bool quoted = false) {
  YamlNode node;
  node.kind = YamlNode::Kind::Scalar;
  node.scalar = text;
  node.quoted = quoted;
  node.line = node.column = 1;
  return node;
}

class ReaderTest : public testing::Test {
protected:
  std::string lastError() {
    return diags.all().empty() ? "" : diags.all().back().message;
  }
  Diagnostics diags;
  Reader reader{"f", diags};
};

TEST_F(ReaderTest, Integers) {
  EXPECT_EQ(reader.integer(plain("42"), "n", 0, 100), 42);
  EXPECT_EQ(reader.integer(plain("-7"), "n", -10, 100), -7);
  EXPECT_EQ(reader.integer(plain("0"), "n", 0, 100), 0);
  EXPECT_EQ(reader.integer(plain("9223372036854775807"), "n", 0, INT64_MAX),
            INT64_MAX);
  EXPECT_FALSE(diags.hasErrors());
  for (const char *text : {"1e3", "0x10", "010", "1_000", "4.0", "yes", "",
                           "+5", "--5", "1 2", "one", "0o7", ".5", "-"}) {
    EXPECT_FALSE(reader.integer(plain(text), "n", 0, 100)) << text;
    EXPECT_EQ(lastError(), std::string("'n' must be an integer in plain "
                                       "digits, not '") +
                               text + "'");
  }
  EXPECT_FALSE(reader.integer(plain("12", true), "n", 0, 100));
  EXPECT_EQ(lastError(),
            "'n' must be an integer in plain digits, not the text '12'");
  EXPECT_FALSE(reader.integer(plain("0"), "n", 1, 100));
  EXPECT_EQ(lastError(), "'n' must be at least 1, not 0");
  EXPECT_FALSE(reader.integer(plain("101"), "n", 1, 100));
  EXPECT_EQ(lastError(), "'n' must be at most 100, not 101");
  EXPECT_FALSE(reader.integer(plain("99999999999999999999"), "n", 1, 100));
  EXPECT_EQ(lastError(), "'n' must be at most 100, not 99999999999999999999");
  EXPECT_FALSE(reader.integer(plain("-99999999999999999999"), "n", 1, 100));
  EXPECT_EQ(lastError(), "'n' must be at least 1, not -99999999999999999999");
}

TEST_F(ReaderTest, IntegersOfAnotherShape) {
  YamlNode node;
  EXPECT_FALSE(reader.integer(node, "n", 0, 1));
  EXPECT_EQ(lastError(), "'n' must be an integer, not empty");
  node.kind = YamlNode::Kind::Map;
  EXPECT_FALSE(reader.integer(node, "n", 0, 1));
  EXPECT_EQ(lastError(), "'n' must be an integer, not a map");
  node.kind = YamlNode::Kind::Sequence;
  EXPECT_FALSE(reader.integer(node, "n", 0, 1));
  EXPECT_EQ(lastError(), "'n' must be an integer, not a list");
}

TEST_F(ReaderTest, Reals) {
  EXPECT_EQ(reader.real(plain("1e-3"), "r", {0, 1}), 1e-3);
  EXPECT_EQ(reader.real(plain("0.95"), "r", {0, 1}), 0.95);
  EXPECT_EQ(reader.real(plain("1"), "r", {0, 1}), 1.0);
  EXPECT_FALSE(diags.hasErrors());
  for (const char *text : {"inf", "nan", ".inf", "-inf", "0x1p3", "1,5", "x"})
    EXPECT_FALSE(reader.real(plain(text), "r", {-10, 10})) << text;
  EXPECT_FALSE(reader.real(plain("1e999"), "r", {0, 1}));
  EXPECT_EQ(lastError(), "'r' must be at least 0 and at most 1, not 1e999");
  EXPECT_FALSE(reader.real(plain("0"), "r", {0, 1, true}));
  EXPECT_EQ(lastError(), "'r' must be above 0 and at most 1, not 0");
  EXPECT_FALSE(reader.real(plain("1"), "r", {0, 1, false, true}));
  EXPECT_EQ(lastError(), "'r' must be at least 0 and below 1, not 1");
}

TEST_F(ReaderTest, Truth) {
  EXPECT_EQ(reader.truth(plain("true"), "b"), true);
  EXPECT_EQ(reader.truth(plain("false"), "b"), false);
  for (const char *text : {"yes", "no", "on", "True", "TRUE", "1", "0"})
    EXPECT_FALSE(reader.truth(plain(text), "b").has_value()) << text;
  EXPECT_EQ(lastError(), "'b' must be true or false, not '0'");
  EXPECT_FALSE(reader.truth(plain("true", true), "b").has_value());
}

TEST_F(ReaderTest, Names) {
  for (const char *text : {"a", "_x", "gpt-small", "h1", "yes", "null_"})
    EXPECT_TRUE(reader.name(plain(text), "name")) << text;
  for (std::string text : {"", "1a", "-a", "a b", "a.b", "a*", "\xC3\xA4"})
    EXPECT_FALSE(reader.name(plain(text), "name")) << text;
  EXPECT_TRUE(reader.name(plain(std::string(64, 'a')), "name"));
  EXPECT_FALSE(reader.name(plain(std::string(65, 'a')), "name"));
}

TEST_F(ReaderTest, Quantities) {
  EXPECT_EQ(reader.time(plain("3 us"), "t"), 3000);
  EXPECT_EQ(reader.bytes(plain("80 GiB"), "m"), int64_t(80) << 30);
  EXPECT_FALSE(diags.hasErrors());
  EXPECT_FALSE(reader.time(plain("3"), "t"));
  EXPECT_EQ(lastError(), "'t': '3' has no unit; write for example '3 us' "
                         "(units: ns, us, ms, s)");
  EXPECT_FALSE(reader.time(plain("10001 s"), "t"));
  EXPECT_EQ(lastError(), "'t' must be at most 10000 s, not 10001 s");
  EXPECT_FALSE(reader.rate(plain("0 GB/s"), "r"));
  EXPECT_EQ(lastError(), "'r' must be above 0");
  EXPECT_FALSE(reader.flops(plain("0 FLOP/s"), "f"));
}

TEST_F(ReaderTest, SchemaVersion) {
  EXPECT_EQ(modelErrors("schema_version: 2\nfuture: 1\n"),
            Messages{"1:17: 'schema_version' must be 1, the only version that "
                     "this program knows"});
  EXPECT_EQ(modelErrors("- a\n"),
            Messages{"1:1: the file must be a map, not a list"});
  EXPECT_EQ(modelErrors("modle: {}\n"),
            (Messages{"1:1: unknown key 'modle' in the file; did you mean "
                      "'model'?",
                      "1:1: the file lacks 'schema_version'",
                      "1:1: the file lacks 'model'",
                      "1:1: the file lacks 'training'"}));
}

TEST_F(ReaderTest, MillionFaultsGiveFewMessages) {
  std::string text = "schema_version: 1\n";
  for (int i = 0; i < 100000; ++i)
    text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_FALSE(readModelText("m.yaml", text, diags));
  EXPECT_EQ(diags.all().size(), Diagnostics::kMaxKept);
}

} // namespace
