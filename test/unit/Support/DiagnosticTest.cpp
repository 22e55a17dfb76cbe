//===- DiagnosticTest.cpp - errors with their place --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The printed form, to the character.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/Diagnostic.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

TEST(DiagnosticTest, PrintsLineCaretAndNotes) {
  Diagnostics diags;
  diags.addSource("m.yaml", "one: 1\n  two: 2\n");
  diags.error({"m.yaml", 2, 3}, "duplicate key 'two'")
      .note({"m.yaml", 1, 1}, "first given here");
  EXPECT_EQ(diags.text(), "m.yaml:2:3: error: duplicate key 'two'\n"
                          "  two: 2\n"
                          "  ^\n"
                          "m.yaml:1:1: note: first given here\n"
                          "one: 1\n"
                          "^\n");
  EXPECT_TRUE(diags.hasErrors());
}

TEST(DiagnosticTest, PlacesWithoutLineOrSource) {
  Diagnostics diags;
  diags.error({"m.yaml", 0, 0}, "is a folder, not a file");
  diags.error({"m.yaml", 3, 1}, "no source known");
  diags.warning({}, "just so");
  EXPECT_EQ(diags.text(), "m.yaml: error: is a folder, not a file\n"
                          "m.yaml:3:1: error: no source known\n"
                          "warning: just so\n");
  EXPECT_EQ(diags.errorCount(), 2u);
}

TEST(DiagnosticTest, PrintsInTheOrderOfTheText) {
  Diagnostics diags;
  diags.error({"b", 2, 1}, "third");
  diags.error({"a", 1, 1}, "fourth");
  diags.error({"b", 1, 5}, "second");
  diags.error({"b", 1, 2}, "first");
  EXPECT_EQ(diags.text(), "b:1:2: error: first\n"
                          "b:1:5: error: second\n"
                          "b:2:1: error: third\n"
                          "a:1:1: error: fourth\n");
}

TEST(DiagnosticTest, WarningsAreNoErrors) {
  Diagnostics diags;
  diags.warning({}, "just so");
  EXPECT_FALSE(diags.hasErrors());
}

TEST(DiagnosticTest, CaretStandsUnderTabsAndWideCharacters) {
  Diagnostics diags;
  diags.addSource("f", "\t\xC3\xA4"
                       "b: x\r\n");
  diags.error({"f", 1, 5}, "here"); // byte 5 is the colon
  EXPECT_EQ(diags.text(), "f:1:5: error: here\n"
                          "\t\xC3\xA4"
                          "b: x\n"
                          "\t  ^\n");
}

TEST(DiagnosticTest, LongLinesAreShownInAWindow) {
  Diagnostics diags;
  diags.addSource("f", std::string(5000, 'a') + "X" + std::string(5000, 'b'));
  diags.error({"f", 1, 5001}, "here");
  EXPECT_EQ(diags.text(), "f:1:5001: error: here\n" + std::string(60, 'a') +
                              "X" + std::string(59, 'b') + "\n" +
                              std::string(60, ' ') + "^\n");
}

TEST(DiagnosticTest, KeepsOnlySoMany) {
  Diagnostics diags;
  for (int i = 0; i < 1000; ++i)
    diags.error({}, "fault").note({}, "remark");
  EXPECT_EQ(diags.errorCount(), 1000u);
  EXPECT_EQ(diags.all().size(), Diagnostics::kMaxKept);
  std::string text = diags.text(),
              tail = "950 further messages are not shown\n";
  EXPECT_EQ(text.substr(text.size() - tail.size()), tail);
}

TEST(DiagnosticTest, QuotableText) {
  EXPECT_EQ(quotable("plain"), "plain");
  EXPECT_EQ(quotable(std::string_view("a\0b\n\x7f", 5)), "a\\x00b\\x0a\\x7f");
  EXPECT_EQ(quotable(std::string(100, 'x'), 4), "xxxx...");
  // No character is cut in half.
  EXPECT_EQ(quotable("aaa\xC3\xA4zz", 4), "aaa\xC3\xA4...");
}

} // namespace
