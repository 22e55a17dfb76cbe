//===- FormulaTests.cpp - arithmetic in schedule rules --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Language.h"

#include <gtest/gtest.h>

#include <random>

using namespace takt;

namespace {

std::string formula(const std::string &text) {
  std::string why;
  const auto read = parseFormula(text, why);
  return read ? toText(*read) : why;
}

TEST(Formulas, ReadAndWrite) {
  EXPECT_EQ(formula("2*(p-r)-1"), "2 * (p - r) - 1");
  EXPECT_EQ(formula("(p - (r)) - (m - 1)"), "p - r - (m - 1)");
  EXPECT_EQ(formula("(a*b)/(c*d)%e"), "a * b / (c * d) % e");
  EXPECT_EQ(formula("min(1,max(p,(r+1)))"), "min(1, max(p, r + 1))");
  EXPECT_EQ(formula("007"), "7");
  EXPECT_EQ(formula("p +"), "expected a number or a name at the end");
  EXPECT_EQ(formula("p r"), "expected an operator instead of 'r'");
  EXPECT_EQ(formula("(p"), "expected ')' at the end");
  EXPECT_EQ(formula("min(p)"), "expected ',' instead of ')'");
  EXPECT_EQ(formula("min p"), "expected '(' instead of 'p'");
  EXPECT_EQ(formula("1000000001"), "a number beyond 1000000000");
  EXPECT_EQ(formula(std::string(70, '(')),
            "more than 64 parentheses in each other");
  std::string sum = "1";
  for (int i = 0; i < 40; ++i)
    sum += "+1";
  EXPECT_EQ(formula(sum), "more than 64 terms");
}

TEST(Formulas, Values) {
  auto value = [](const std::string &text, bool whole) {
    std::string why;
    const auto read = parseFormula(text, why);
    EXPECT_TRUE(read) << why;
    const auto result = evaluate(*read, {{"p", 7}, {"r", 2}}, whole, why);
    return result ? std::to_string(*result) : why;
  };
  EXPECT_EQ(value("p / r", true), "3.000000");
  EXPECT_EQ(value("p / r", false), "3.500000");
  EXPECT_EQ(value("(r - p) / 2", true), "-3.000000");
  EXPECT_EQ(value("(r - p) % 3", true), "1.000000");
  EXPECT_EQ(value("max(p, r) - min(p, r)", true), "5.000000");
  EXPECT_EQ(value("p / (r - 2)", true), "'p / (r - 2)' divides by zero");
  EXPECT_EQ(value("p % (r - 2)", true), "'p % (r - 2)' divides by zero");
  EXPECT_EQ(value("x", true), "there is no 'x'");
  EXPECT_EQ(value("1000000000 * 2", true),
            "'1000000000 * 2' is beyond 1000000000");
}

// Random formulas: the written text reads back as the same, with the same
// value.
TEST(Formulas, TextAndFormulaAreOneToOne) {
  std::mt19937 random(9);
  for (int round = 0; round < 3000; ++round) {
    Formula made;
    int depth = 0;
    while (made.terms.size() < 1 + random() % 20 || depth > 1) {
      Formula::Term term;
      if (depth < 2 || (made.terms.size() < 12 && random() % 2)) {
        if (random() % 2)
          term.number = random() % 10;
        else
          term.op = Formula::Op::Name, term.name = random() % 2 ? "p" : "r";
        ++depth;
      } else {
        term.op = static_cast<Formula::Op>(2 + random() % 7);
        --depth;
      }
      made.terms.push_back(term);
    }
    if (depth != 1)
      continue;
    std::string why;
    const auto read = parseFormula(toText(made), why);
    ASSERT_TRUE(read) << toText(made) << ": " << why;
    EXPECT_EQ(*read, made) << toText(made);
  }
}

} // namespace
