//===- Yaml.cpp - YAML text as a tree with places -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Builds the tree from yaml-cpp's events and enforces the limits as they come.
// An alias shares the node of its anchor, so memory stays bounded by the text;
// sizes and heights are kept per anchor to bound the walk over the expansion.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Yaml.h"

#include "takt/Support/TextFile.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

using namespace takt;

namespace {

/// Leaves the parser from inside an event.
struct Refusal : std::exception {
  Refusal(int line, int column, std::string message)
      : line(line), column(column), message(std::move(message)) {}
  int line, column;
  std::string message;
};

class TreeBuilder : public YAML::EventHandler {
public:
  TreeBuilder(const std::string &file, const std::string &text,
              Diagnostics &diags)
      : file(file), text(text), diags(diags) {}

  YamlNodePtr takeRoot() { return std::move(root); }

  void OnDocumentStart(const YAML::Mark &mark) override {
    if (documents++)
      refuse(mark, "a second document; a file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    open(mark, YamlNode::Kind::Null, anchor);
    close();
  }

  void OnScalar(const YAML::Mark &mark, const std::string &tag,
                YAML::anchor_t anchor, const std::string &value) override {
    checkTag(mark, tag);
    checkQuotes(mark);
    YamlNode &node = open(mark, YamlNode::Kind::Scalar, anchor);
    node.scalar = value;
    node.quoted = tag == "!";
    close();
  }

  void OnAlias(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    auto it = anchors.find(anchor);
    if (it == anchors.end())
      refuse(mark, "the alias stands inside the node it names");
    const Anchored &target = it->second;
    if (static_cast<int>(stack.size()) + target.height > kMaxYamlDepth)
      refuse(mark, fmt::format("with this alias, nesting is deeper than {} "
                               "levels",
                               kMaxYamlDepth));
    count(mark, target.nodes, "with its aliases expanded, ");
    if (stack.empty())
      refuse(mark, "a document cannot be an alias alone");
    stack.back().height = std::max(stack.back().height, target.height + 1);
    stack.back().nodes += target.nodes;
    attach(target.node, mark);
  }

  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    checkTag(mark, tag);
    open(mark, YamlNode::Kind::Sequence, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark &mark, const std::string &tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    checkTag(mark, tag);
    open(mark, YamlNode::Kind::Map, anchor);
  }
  void OnMapEnd() override { close(); }

private:
  struct Frame {
    std::shared_ptr<YamlNode> node;
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    int height = 1;    ///< levels below and including the node
    int64_t nodes = 1; ///< expanded
    bool haveKey = false;
    bool dropValue = false; ///< the value belongs to a duplicate key
    YamlNode::Entry key;
    std::map<std::string, SourceLoc> firstPlace;
  };
  struct Anchored {
    YamlNodePtr node;
    int height = 1;
    int64_t nodes = 1;
  };

  [[noreturn]] void refuse(const YAML::Mark &mark, std::string message) {
    throw Refusal(mark.line + 1, mark.column + 1, std::move(message));
  }

  void checkTag(const YAML::Mark &mark, const std::string &tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, fmt::format("the tag '{}'; tags are not supported",
                               quotable(tag)));
  }

  /// yaml-cpp takes the end of the file, after a line break, for the end of a
  /// quoted scalar.
  void checkQuotes(const YAML::Mark &mark) {
    auto begin = static_cast<std::size_t>(mark.pos);
    if (begin >= text.size() || (text[begin] != '\'' && text[begin] != '"'))
      return;
    char quote = text[begin];
    for (std::size_t i = begin + 1; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\')
        ++i;
      else if (text[i] == quote && quote == '\'' && i + 1 < text.size() &&
               text[i + 1] == quote)
        ++i;
      else if (text[i] == quote)
        return;
    }
    refuse(mark, "the quote is not closed");
  }

  void count(const YAML::Mark &mark, int64_t more, const char *why) {
    total += more;
    if (total > kMaxYamlNodes)
      refuse(mark, fmt::format("{}the file has more than {} values", why,
                               kMaxYamlNodes));
  }

  YamlNode &open(const YAML::Mark &mark, YamlNode::Kind kind,
                 YAML::anchor_t anchor) {
    if (static_cast<int>(stack.size()) >= kMaxYamlDepth)
      refuse(mark,
             fmt::format("nesting is deeper than {} levels", kMaxYamlDepth));
    count(mark, 1, "");
    Frame frame;
    frame.node = std::make_shared<YamlNode>();
    frame.node->kind = kind;
    frame.node->line = mark.line + 1;
    frame.node->column = mark.column + 1;
    frame.mark = mark;
    frame.anchor = anchor;
    stack.push_back(std::move(frame));
    return *stack.back().node;
  }

  void close() {
    Frame frame = std::move(stack.back());
    stack.pop_back();
    if (frame.anchor != YAML::NullAnchor)
      anchors[frame.anchor] = {frame.node, frame.height, frame.nodes};
    if (stack.empty()) {
      root = frame.node;
      return;
    }
    Frame &parent = stack.back();
    parent.height = std::max(parent.height, frame.height + 1);
    parent.nodes += frame.nodes;
    // The mark of an absent value is that of whatever comes next.
    if (frame.node->kind == YamlNode::Kind::Null && parent.haveKey) {
      frame.node->line = parent.key.line;
      frame.node->column = parent.key.column;
    }
    attach(frame.node, frame.mark);
  }

  /// Gives a finished node to the innermost open list or map.
  void attach(YamlNodePtr node, const YAML::Mark &mark) {
    Frame &frame = stack.back();
    if (frame.node->kind == YamlNode::Kind::Sequence) {
      frame.node->items.push_back(std::move(node));
      return;
    }
    if (frame.haveKey) {
      frame.haveKey = false;
      frame.key.value = std::move(node);
      if (!frame.dropValue)
        frame.node->entries.push_back(std::move(frame.key));
      return;
    }
    if (node->kind != YamlNode::Kind::Scalar)
      refuse(mark, "a key must be a name");
    SourceLoc here{file, mark.line + 1, mark.column + 1};
    auto [first, isNew] = frame.firstPlace.emplace(node->scalar, here);
    if (!isNew)
      diags
          .error(here,
                 fmt::format("duplicate key '{}'", quotable(node->scalar)))
          .note(first->second, "first given here");
    frame.haveKey = true;
    frame.dropValue = !isNew;
    frame.key = {node->scalar, here.line, here.column, nullptr};
  }

  const std::string &file;
  const std::string &text;
  Diagnostics &diags;
  std::vector<Frame> stack;
  std::map<YAML::anchor_t, Anchored> anchors;
  YamlNodePtr root;
  int64_t total = 0;
  int documents = 0;
};

/// YAML forbids tabs in indentation; the parser's own words for it mislead. The
/// parser's look-ahead over one line takes about 100 bytes for each of it.
bool checkLines(const std::string &file, const std::string &text,
                Diagnostics &diags) {
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    std::size_t first = text.find_first_not_of(' ', begin);
    if (first == std::string::npos)
      break;
    if (text[first] == '\t') {
      diags.error({file, line, static_cast<int>(first - begin) + 1},
                  "a tab in the indentation; YAML allows blanks only");
      return false;
    }
    std::size_t end = text.find('\n', first);
    if (std::min(end, text.size()) - begin > kMaxYamlLine) {
      diags.error({file, line, 1}, fmt::format("the line is longer than {} MiB",
                                               kMaxYamlLine >> 20));
      return false;
    }
    if (end == std::string::npos)
      break;
    begin = end + 1;
  }
  return true;
}

} // namespace

YamlNodePtr takt::parseYaml(const std::string &file, std::string text,
                            Diagnostics &diags) {
  if (!checkText(file, text, diags))
    return nullptr;
  diags.addSource(file, text);
  if (!checkLines(file, text, diags))
    return nullptr;
  std::istringstream stream(text);
  TreeBuilder builder(file, text, diags);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refusal &refusal) {
    diags.error({file, refusal.line, refusal.column}, refusal.message);
    return nullptr;
  } catch (const YAML::Exception &fault) {
    int line = fault.mark.is_null() ? 0 : fault.mark.line + 1;
    int column = fault.mark.is_null() ? 0 : fault.mark.column + 1;
    diags.error({file, line, column}, "bad YAML: " + fault.msg);
    return nullptr;
  }
  YamlNodePtr root = builder.takeRoot();
  if (!root || root->kind == YamlNode::Kind::Null) {
    diags.error({file, 1, 1}, "the file is empty");
    return nullptr;
  }
  return root;
}
