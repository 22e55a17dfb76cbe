//===- arguments.cpp - what every tool refuses ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The library's errors carry sentences of its own; their kind and the options
// they name are kept, and the rest is said anew.
//
//===----------------------------------------------------------------------===//

#include "arguments.h"

#include "takt-rt/core/error.h"
#include "takt/Support/Diagnostic.h"
#include "takt/Support/NearestName.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace takt::arguments {

void claimStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) {
      // The lowest free number is this stream's.
      int got = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
      (void)got;
    }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

CLI::Validator wholeNumber(int64_t least, int64_t most) {
  auto check = [least, most](const std::string &text) -> std::string {
    int64_t value = 0;
    const char *last = text.data() + text.size();
    auto [end, error] = std::from_chars(text.data(), last, value);
    if (error == std::errc() && end == last && value >= least && value <= most)
      return "";
    return fmt::format("'{}' is not a whole number from {} to {}",
                       quotable(text), least, most);
  };
  return CLI::Validator(check, fmt::format("from {} to {}", least, most), "");
}

CLI::Validator number(double least, double most) {
  auto check = [least, most](const std::string &text) -> std::string {
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    // Every comparison with a NaN is false.
    if (!text.empty() && *end == '\0' && value >= least && value <= most)
      return "";
    return fmt::format("'{}' is not a number from {} to {}", quotable(text),
                       least, most);
  };
  return CLI::Validator(check, fmt::format("from {} to {}", least, most), "");
}

CLI::Validator oneOf(std::vector<std::string> words) {
  std::string all = fmt::format("{}", fmt::join(words, ", "));
  std::string shown = fmt::format("{{{}}}", fmt::join(words, ","));
  auto check = [words = std::move(words),
                all](const std::string &text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end())
      return "";
    return fmt::format("'{}' is none of {}{}", quotable(text), all,
                       nearestHint(text, words));
  };
  return CLI::Validator(check, shown, "");
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// What is wrong with "--option=" and nothing behind it, where the library would
/// take the next word for the value, or with an empty word, which is a variable
/// that was not set. Empty: nothing.
static std::string emptyValueFault(int argc, const char *const *argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--")
      break;
    if (word.empty())
      return fmt::format("an argument is empty, after '{}'", argv[i - 1]);
    if (word.size() > 3 && word.compare(0, 2, "--") == 0 && word.back() == '=')
      return fmt::format("'{}' lacks its value", word);
  }
  return "";
}

/// The innermost command that was named.
static const CLI::App &namedCommand(const CLI::App &app) {
  std::vector<const CLI::App *> named =
      app.get_subcommands([](const CLI::App *sub) { return sub->parsed(); });
  return named.empty() ? app : namedCommand(*named.front());
}

static std::string extrasFault(const CLI::App &app) {
  std::vector<std::string> extras = app.remaining(true);
  for (const std::string &extra : extras) {
    if (extra.size() < 2 || extra[0] != '-')
      continue;
    std::vector<std::string> known;
    for (const CLI::Option *option : namedCommand(app).get_options())
      for (const std::string &name : option->get_lnames())
        known.push_back("--" + name);
    std::string name = extra.substr(0, extra.find('='));
    return fmt::format("unknown option '{}'{}", quotable(name),
                       nearestHint(name, known));
  }
  for (std::string &extra : extras)
    extra = quotable(extra);
  return fmt::format("unexpected argument{} '{}'", extras.size() > 1 ? "s" : "",
                     fmt::join(extras, "', '"));
}

static std::string requiredFault(const CLI::App &app, const std::string &said) {
  const std::string::size_type end = said.rfind(" is required");
  const std::string what = said.substr(0, end);
  if (end == std::string::npos || what != "A subcommand")
    return fmt::format("{} is missing", what);
  std::vector<std::string> names;
  for (const CLI::App *command : namedCommand(app).get_subcommands(nullptr))
    names.push_back(command->get_name());
  return fmt::format("a command is missing; there {} {}",
                     names.size() == 1 ? "is" : "are", fmt::join(names, ", "));
}

/// Of a sentence that begins with an option and a colon, or of any other.
static std::string faultOfOption(const std::string &said) {
  size_t colon = said.find(": ");
  std::string name = colon == std::string::npos ? "" : said.substr(0, colon);
  std::string rest = name.empty() ? said : said.substr(colon + 2);
  if (!rest.empty() && rest[0] != '\'')
    rest[0] = char(std::tolower(static_cast<unsigned char>(rest[0])));
  return name.empty() ? rest : fmt::format("'{}': {}", name, rest);
}

/// "A verb B", with the options in quotes; nothing when it is not of this form.
static std::string faultOfTwo(const std::string &said, const char *verb,
                              const char *form) {
  size_t at = said.find(verb);
  if (at == std::string::npos)
    return "";
  return fmt::format(fmt::runtime(form), said.substr(0, at),
                     said.substr(at + std::string(verb).size()));
}

static std::string mismatchFault(const std::string &said) {
  std::string name = said.substr(0, said.find(':'));
  if (said.find("At Most 1 required") != std::string::npos)
    return fmt::format("'{}' is given more than once", name);
  if (said.size() > 8 && said.rfind(" missing") == said.size() - 8)
    return fmt::format("'{}' lacks its value", name);
  return faultOfOption(said);
}

/// Every option with a value checks it, so that only flags get here.
static std::string conversionFault(const std::string &said) {
  size_t begin = said.find("-");
  size_t end = said.find_first_of(": ", begin);
  if (begin == std::string::npos)
    return faultOfOption(said);
  return fmt::format("'{}' takes no value", said.substr(begin, end - begin));
}

static std::string faultOf(const CLI::App &app, const CLI::ParseError &error) {
  const std::string said = error.what();
  if (dynamic_cast<const CLI::ExtrasError *>(&error))
    return extrasFault(app);
  if (dynamic_cast<const CLI::RequiredError *>(&error))
    return requiredFault(app, said);
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error))
    return mismatchFault(said);
  if (dynamic_cast<const CLI::ConversionError *>(&error))
    return conversionFault(said);
  std::string two;
  if (dynamic_cast<const CLI::ExcludesError *>(&error))
    two = faultOfTwo(said, " excludes ", "'{}' and '{}' exclude each other");
  if (dynamic_cast<const CLI::RequiresError *>(&error))
    two = faultOfTwo(said, " requires ", "'{}' needs '{}'");
  return two.empty() ? faultOfOption(said) : two;
}

std::optional<int> parse(CLI::App &app, int argc, const char *const *argv) {
  std::string fault = emptyValueFault(argc, argv);
  if (fault.empty()) {
    try {
      app.parse(argc, argv);
      return std::nullopt;
    } catch (const CLI::Success &success) {
      return app.exit(success);
    } catch (const CLI::ParseError &error) {
      fault = faultOf(app, error);
    }
  }
  std::cerr << fmt::format("{}: error: {}\n", app.get_name(), fault);
  return int(rt::ExitCode::Usage);
}

} // namespace takt::arguments
