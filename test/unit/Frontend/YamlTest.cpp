//===- YamlTest.cpp - limits while parsing -----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Texts made to break a parser: each must be refused at its place, at once, in
// little memory.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Yaml.h"

#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

std::string repeat(const std::string &text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i)
    result += text;
  return result;
}

Messages faults(std::string text) {
  Diagnostics diags;
  YamlNodePtr root = parseYaml("f", std::move(text), diags);
  Messages messages = render(diags);
  if (!root && messages.empty())
    messages.push_back("no tree and no message");
  return messages;
}

TEST(YamlTest, BuildsTheTreeWithPlaces) {
  Diagnostics diags;
  YamlNodePtr root = parseYaml("f", "a: [1, '2']\nb:\n  c: ~\n", diags);
  ASSERT_TRUE(root);
  ASSERT_EQ(root->entries.size(), 2u);
  const YamlNode &list = *root->entries[0].value;
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0]->scalar, "1");
  EXPECT_FALSE(list.items[0]->quoted);
  EXPECT_TRUE(list.items[1]->quoted);
  EXPECT_EQ(list.items[1]->column, 8);
  const YamlNode::Entry &inner = root->entries[1].value->entries[0];
  EXPECT_EQ(inner.key, "c");
  EXPECT_EQ(inner.line, 3);
  EXPECT_EQ(inner.column, 3);
  EXPECT_EQ(inner.value->kind, YamlNode::Kind::Null);
}

TEST(YamlTest, AliasesShareNodes) {
  Diagnostics diags;
  YamlNodePtr root = parseYaml("f", "a: &x {k: 1}\nb: *x\n", diags);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->entries[0].value, root->entries[1].value);
}

TEST(YamlTest, AliasBomb) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    text += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i)
      text += (i ? ", *" : "*") + std::string(1, static_cast<char>(c - 1));
    text += "]\n";
  }
  EXPECT_EQ(faults(text),
            Messages{"6:36: with its aliases expanded, the file has more than "
                     "1000000 values"});
}

TEST(YamlTest, AliasesCannotHideDepth) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
            std::to_string(i - 1) + "]\n";
  EXPECT_EQ(
      faults(text),
      Messages{"63:12: with this alias, nesting is deeper than 64 levels"});
}

TEST(YamlTest, AliasInsideItself) {
  EXPECT_EQ(faults("a: &a [*a]"),
            Messages{"1:8: the alias stands inside the node it names"});
  EXPECT_EQ(faults("a: *b"),
            Messages{"1:4: bad YAML: the referenced anchor is not defined"});
}

TEST(YamlTest, DeepNesting) {
  for (const char *text : {"[", "{a: ", "- ", "? ", "a: ["}) {
    Messages messages = faults(repeat(text, 100000));
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find(": nesting is deeper than 64 levels"),
              std::string::npos)
        << messages[0];
  }
  EXPECT_EQ(faults(repeat("- ", 100000)),
            Messages{"1:129: nesting is deeper than 64 levels"});
  EXPECT_EQ(faults(repeat("[", 62) + "x" + repeat("]", 62)), Messages());
}

TEST(YamlTest, HugeFile) {
  EXPECT_EQ(faults(repeat("a: b\n", (17 << 20) / 5)),
            Messages{"0:0: the text is larger than 16 MiB"});
  EXPECT_EQ(faults("a:\n" + repeat("- b\n", 1 << 20)),
            Messages{"999999:3: the file has more than 1000000 values"});
  EXPECT_EQ(faults("a: b\nc: " + repeat("x", 2 << 20)),
            Messages{"2:1: the line is longer than 1 MiB"});
}

TEST(YamlTest, BinaryAndEmpty) {
  EXPECT_EQ(faults(std::string("a: b\n\0", 6)),
            Messages{"2:1: not a text file: byte 0x00"});
  EXPECT_EQ(faults("a: \xff"), Messages{"1:4: not valid UTF-8: byte 0xff"});
  EXPECT_EQ(faults(""), Messages{"1:1: the file is empty"});
  EXPECT_EQ(faults("# nothing\n"), Messages{"1:1: the file is empty"});
  EXPECT_EQ(faults("---\n...\n"), Messages{"1:1: the file is empty"});
}

TEST(YamlTest, TabsInIndentation) {
  EXPECT_EQ(faults("a:\n\tb: 1\n"),
            Messages{"2:1: a tab in the indentation; YAML allows blanks only"});
  EXPECT_EQ(faults("a:\n  \tb: 1\n"),
            Messages{"2:3: a tab in the indentation; YAML allows blanks only"});
  EXPECT_EQ(faults("a:\t1 # remark\tmore\nb:\t2\n"), Messages());
}

TEST(YamlTest, DuplicateKeys) {
  EXPECT_EQ(faults("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n"),
            (Messages{"4:3: duplicate key 'c'", "note 3:3: first given here",
                      "5:1: duplicate key 'a'", "note 1:1: first given here"}));
  EXPECT_EQ(faults("a: 1\n\"a\": 2\n"),
            (Messages{"2:1: duplicate key 'a'", "note 1:1: first given here"}));
}

TEST(YamlTest, SeveralDocuments) {
  EXPECT_EQ(faults("a: 1\n---\nb: 2\n"),
            Messages{"2:1: a second document; a file holds one"});
}

TEST(YamlTest, TagsAndKeys) {
  EXPECT_EQ(faults("a: !!int 1\n"),
            Messages{"1:4: the tag 'tag:yaml.org,2002:int'; tags are not "
                     "supported"});
  EXPECT_EQ(faults("{a: 1}: 2\n"), Messages{"1:1: a key must be a name"});
  EXPECT_EQ(faults("? [a]\n: 2\n"), Messages{"1:3: a key must be a name"});
}

TEST(YamlTest, BadSyntax) {
  EXPECT_EQ(faults("a: b: c\n"), Messages{"1:5: bad YAML: illegal map value"});
  EXPECT_EQ(faults("a: [1, 2\nb: 3\n").size(), 1u);
  EXPECT_EQ(faults("a: 'x\n"), Messages{"1:4: the quote is not closed"});
  EXPECT_EQ(faults("a: \"x\\\"\n"), Messages{"1:4: the quote is not closed"});
  EXPECT_EQ(faults("a: 'it''s'\nb: \"\\\"\"\r\nc: 'x'\n"), Messages());
}

/// Every prefix and every single-byte change of a file ends in a tree or a
/// message.
TEST(YamlTest, DamagedTexts) {
  const std::string text = "a: &x {k: [1, 'two', \"3\"], l: *x}\n"
                           "b:\n  - |\n    text\n  - >-\n    more\n"
                           "c: {? d : e}\n# end\n";
  for (std::size_t i = 0; i < text.size(); ++i) {
    faults(text.substr(0, i));
    for (char c : std::string("\0{}[],:&*!|>'\"%@-?#\n \t~\xc3", 25)) {
      std::string damaged = text;
      damaged[i] = c;
      Messages messages = faults(damaged);
      EXPECT_NE(messages, Messages{"no tree and no message"}) << damaged;
    }
  }
}

} // namespace
