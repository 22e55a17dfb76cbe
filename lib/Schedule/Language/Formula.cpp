//===- Formula.cpp - arithmetic in schedule rules -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
//   sum     = product { ("+" | "-") product }
//   product = value { ("*" | "/" | "%") value }
//   value   = number | name | "(" sum ")" | ("min" | "max") "(" sum "," sum ")"
//
// Depth is bounded by the number of terms, so neither reading nor writing can
// run out of stack.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Language.h"

#include <fmt/format.h>

#include <cmath>

namespace takt {

namespace {

using Op = Formula::Op;

constexpr double kLargest = 1e9;

bool isLetter(char c) { return c >= 'a' && c <= 'z'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

class FormulaParser {
public:
  explicit FormulaParser(const std::string &text) : text(text) {}

  std::optional<Formula> run(std::string &why) {
    bool good = sum();
    skip();
    if (good && at < text.size())
      good = fail("an operator");
    if (good)
      return std::move(formula);
    why = std::move(fault);
    return std::nullopt;
  }

private:
  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool accept(char c) {
    skip();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool fail(const char *needed) {
    if (fault.empty())
      fault = at < text.size()
                  ? fmt::format("expected {} instead of '{}'", needed,
                                quotable(text.substr(at), 20))
                  : fmt::format("expected {} at the end", needed);
    return false;
  }
  bool push(Formula::Term term) {
    if (formula.terms.size() == Formula::kMostTerms) {
      fault = fmt::format("more than {} terms", Formula::kMostTerms);
      return false;
    }
    formula.terms.push_back(std::move(term));
    return true;
  }

  bool sum() {
    if (!product())
      return false;
    for (;;) {
      const Op op = accept('+')   ? Op::Add
                    : accept('-') ? Op::Subtract
                                  : Op::Number;
      if (op == Op::Number)
        return true;
      if (!product() || !push({op}))
        return false;
    }
  }
  bool product() {
    if (!value())
      return false;
    for (;;) {
      const Op op = accept('*')   ? Op::Multiply
                    : accept('/') ? Op::Divide
                    : accept('%') ? Op::Remainder
                                  : Op::Number;
      if (op == Op::Number)
        return true;
      if (!value() || !push({op}))
        return false;
    }
  }
  bool value() {
    if (accept('('))
      return nested();
    skip();
    if (at == text.size() || (!isDigit(text[at]) && !isLetter(text[at])))
      return fail("a number or a name");
    if (isDigit(text[at]))
      return number();
    std::string name;
    while (at < text.size() && isLetter(text[at]))
      name += text[at++];
    if (name != "min" && name != "max")
      return push({Op::Name, 0, std::move(name)});
    if (!accept('('))
      return fail("'('");
    if (!deeper() || !sum())
      return false;
    if (!accept(','))
      return fail("','");
    return nested() && push({name == "min" ? Op::Min : Op::Max});
  }
  bool nested() {
    if (!deeper() || !sum())
      return false;
    --depth;
    return accept(')') || fail("')'");
  }
  bool deeper() {
    if (++depth <= Formula::kMostTerms)
      return true;
    fault = fmt::format("more than {} parentheses in each other",
                        Formula::kMostTerms);
    return false;
  }
  bool number() {
    int64_t number = 0;
    while (at < text.size() && isDigit(text[at])) {
      number = number * 10 + (text[at++] - '0');
      if (number > int64_t(kLargest)) {
        fault = fmt::format("a number beyond {}", int64_t(kLargest));
        return false;
      }
    }
    return push({Op::Number, int32_t(number)});
  }

  const std::string &text;
  size_t at = 0, depth = 0;
  Formula formula;
  std::string fault;
};

/// The text of a part and how tightly its outermost operator binds.
struct Part {
  std::string text;
  int strength = 3;
};

std::string wrapped(const Part &part, int least) {
  return part.strength < least ? "(" + part.text + ")" : part.text;
}

double apply(Op op, double a, double b, bool whole) {
  switch (op) {
  case Op::Add:
    return a + b;
  case Op::Subtract:
    return a - b;
  case Op::Multiply:
    return a * b;
  case Op::Divide:
    return whole ? std::floor(a / b) : a / b;
  case Op::Remainder:
    return a - b * std::floor(a / b);
  case Op::Min:
    return std::min(a, b);
  default:
    return std::max(a, b);
  }
}

} // namespace

std::optional<Formula> parseFormula(const std::string &text, std::string &why) {
  return FormulaParser(text).run(why);
}

std::string toText(const Formula &formula) {
  std::vector<Part> stack;
  for (const Formula::Term &term : formula.terms) {
    if (term.op == Op::Number || term.op == Op::Name) {
      stack.push_back(
          {term.op == Op::Number ? std::to_string(term.number) : term.name});
      continue;
    }
    const Part right = std::move(stack.back());
    stack.pop_back();
    const Part left = std::move(stack.back());
    stack.pop_back();
    if (term.op == Op::Min || term.op == Op::Max) {
      stack.push_back(
          {fmt::format("{}({}, {})", term.op == Op::Min ? "min" : "max",
                       left.text, right.text)});
      continue;
    }
    const int strength = term.op <= Op::Subtract ? 1 : 2;
    const char symbol = "+-*/%"[int(term.op) - int(Op::Add)];
    stack.push_back({fmt::format("{} {} {}", wrapped(left, strength), symbol,
                                 wrapped(right, strength + 1)),
                     strength});
  }
  return stack.empty() ? std::string() : stack.back().text;
}

std::optional<double> evaluate(const Formula &formula,
                               const FormulaNames &names, bool whole,
                               std::string &why) {
  std::vector<double> stack;
  for (const Formula::Term &term : formula.terms) {
    if (term.op == Op::Number) {
      stack.push_back(term.number);
      continue;
    }
    if (term.op == Op::Name) {
      const auto found = names.find(term.name);
      if (found == names.end()) {
        why = fmt::format("there is no '{}'", quotable(term.name));
        return std::nullopt;
      }
      stack.push_back(found->second);
      continue;
    }
    const double right = stack.back();
    stack.pop_back();
    if (right == 0 && (term.op == Op::Divide || term.op == Op::Remainder)) {
      why = fmt::format("'{}' divides by zero", toText(formula));
      return std::nullopt;
    }
    stack.back() = apply(term.op, stack.back(), right, whole);
    if (std::abs(stack.back()) > kLargest) {
      why =
          fmt::format("'{}' is beyond {}", toText(formula), int64_t(kLargest));
      return std::nullopt;
    }
  }
  return stack.back();
}

} // namespace takt
