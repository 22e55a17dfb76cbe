//===- TextFileTest.cpp - reading input files --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What is refused, and where.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/TextFile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

using namespace takt;

namespace {

/// The first message of checkText, with its place.
std::string fault(std::string text) {
  Diagnostics diags;
  if (checkText("f", text, diags))
    return "";
  const Diagnostic &first = diags.all().front();
  return std::to_string(first.loc.line) + ":" +
         std::to_string(first.loc.column) + ": " + first.message;
}

TEST(TextFileTest, AcceptsText) {
  EXPECT_EQ(fault("a: \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\r\n\tb\n"), "");
}

TEST(TextFileTest, RefusesWhatIsNoText) {
  EXPECT_EQ(fault(""), "1:1: the file is empty");
  EXPECT_EQ(fault(" \n\t\r\n"), "1:1: the file is empty");
  EXPECT_EQ(fault(std::string("a\nb\0c", 5)),
            "2:2: not a text file: byte 0x00");
  EXPECT_EQ(fault("a\x1b[0m"), "1:2: not a text file: byte 0x1b");
  EXPECT_EQ(fault("a\n\nbc\xff"), "3:3: not valid UTF-8: byte 0xff");
  EXPECT_EQ(fault("\xC0\xAF"), "1:1: not valid UTF-8: byte 0xc0"); // overlong
  EXPECT_EQ(fault("\xE0\x80\x80"), "1:1: not valid UTF-8: byte 0xe0");
  EXPECT_EQ(fault("\xED\xA0\x80"), "1:1: not valid UTF-8: byte 0xed");
  EXPECT_EQ(fault("\xF4\x90\x80\x80"), "1:1: not valid UTF-8: byte 0xf4");
  EXPECT_EQ(fault("ab\xC3"), "1:3: not valid UTF-8: byte 0xc3"); // cut off
}

TEST(TextFileTest, RemovesByteOrderMark) {
  Diagnostics diags;
  std::string text = "\xEF\xBB\xBFkey: 1\n";
  EXPECT_TRUE(checkText("f", text, diags));
  EXPECT_EQ(text, "key: 1\n");
}

TEST(TextFileTest, ReadsFiles) {
  std::string path = testing::TempDir() + "takt-text-file-test";
  std::ofstream(path) << "hello\n";
  Diagnostics diags;
  EXPECT_EQ(readTextFile(path, diags).value_or(""), "hello\n");
  std::remove(path.c_str());
  EXPECT_FALSE(readTextFile(path, diags));
  EXPECT_EQ(diags.all().back().message,
            "cannot open the file: No such file or directory");
  EXPECT_FALSE(readTextFile("/", diags));
  EXPECT_EQ(diags.all().back().message, "is a folder, not a file");
}

TEST(TextFileTest, StopsAtTheLimit) {
  Diagnostics diags;
  EXPECT_FALSE(readTextFile("/dev/zero", diags));
  EXPECT_EQ(diags.text(), "/dev/zero: error: the file is larger than 16 MiB\n");
}

} // namespace
