//===- compare.cpp - plans side by side -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rows are compared by throughput, which models of different batches have in
// common.
//
//===----------------------------------------------------------------------===//
#include "compare.h"
#include "options.h"

#include "../arguments.h"

#include "takt/Frontend/Read.h"
#include "takt/Support/NearestName.h"
#include "takt/Support/Quantity.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

using namespace takt;
using nlohmann::ordered_json;
using rt::ExitCode;

namespace {

constexpr size_t kMostPlans = 1024;

struct Row {
  std::string model, cluster, options;
  CompileOutcome outcome;

  bool hasPlan() const { return outcome.code == int(ExitCode::Done); }
  double number(const char *key) const {
    const ordered_json &value = outcome.report.at(key);
    return value.is_null() ? 0 : value.get<double>();
  }
  double samplesPerSecond() const {
    double step = number("step_time_ns");
    return step > 0 ? number("global_batch") * 1e9 / step : 0;
  }
};

/// Whether a file is a model, by its only key that matters here. What is
/// neither is left to the reader of clusters, which knows presets.
bool isModel(const std::string &path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none))
    return false;
  try {
    YAML::Node root = YAML::Load(rt::readFile(path));
    return root.IsMap() && root["model"] && !root["cluster"];
  } catch (const YAML::Exception &) {
    return path.find("cluster") == std::string::npos;
  }
}

/// The options in the words of one set, or what is wrong with them.
std::string readSet(const std::string &words, CompileOptions &options) {
  std::vector<std::string> argv{"taktc"};
  std::istringstream in(words);
  for (std::string word; in >> word;)
    argv.push_back(word);
  std::vector<const char *> pointers;
  for (const std::string &word : argv)
    pointers.push_back(word.c_str());
  CLI::App app("options of a plan", "taktc");
  OptionTexts text;
  addCompileOptions(app, options, text);
  if (arguments::parse(app, int(pointers.size()), pointers.data()))
    return "-"; // it has been said
  for (const char *name :
       {"model", "cluster", "--output", "--emit", "--format", "--quiet",
        "--progress", "--force", "--explain", "--dump-levels", "--dump-smt2"})
    if (app.get_option(name)->count() > 0)
      return fmt::format("'--with \"{}\"' may hold what changes a plan, and "
                         "not '{}'",
                         words, name);
  return settle(text, app.get_option("--output"), options);
}

std::string widthsOf(const ordered_json &stages) {
  std::string text;
  for (const ordered_json &stage : stages)
    text += fmt::format("{}{}", text.empty() ? "" : "+",
                        stage.at("replicas").get<int64_t>());
  // Equal ones are counted: 4 x 2 reads better than 2+2+2+2.
  bool equal = std::all_of(stages.begin(), stages.end(), [&](const auto &s) {
    return s.at("replicas") == stages.front().at("replicas");
  });
  return equal ? fmt::format("{} x {}", stages.size(),
                             stages.front().at("replicas").get<int64_t>())
               : text;
}

int64_t peakOf(const ordered_json &stages) {
  int64_t most = 0;
  for (const ordered_json &stage : stages)
    for (const ordered_json &bytes : stage.at("peak_bytes"))
      most = std::max(most, bytes.get<int64_t>());
  return most;
}

/// The first line of what was said, without its place.
std::string reasonOf(const CompileOutcome &outcome) {
  std::string line = outcome.messages.substr(0, outcome.messages.find('\n'));
  size_t at = line.find("error: ");
  return at == std::string::npos ? line : line.substr(at + 7);
}

using Cells = std::vector<std::string>;

Cells cellsOf(const Row &row, double best) {
  Cells cells{row.model, row.cluster, row.options};
  if (!row.hasPlan()) {
    cells.push_back(reasonOf(row.outcome));
    return cells;
  }
  const ordered_json &stages = row.outcome.report.at("stages");
  const ordered_json &gap = row.outcome.report.at("gap");
  const ordered_json &bubble = row.outcome.report.at("bubble");
  const ordered_json &price = row.outcome.report.at("price_per_step");
  auto percent = [](const ordered_json &share) {
    return share.is_null() ? std::string("-")
                           : fmt::format("{:.1f} %", 100 * share.get<double>());
  };
  double rate = row.samplesPerSecond();
  for (const std::string &cell :
       {widthsOf(stages), formatTime(Nanos(row.number("step_time_ns"))),
        fmt::format("{:.5g}", rate),
        best > 0 ? fmt::format("{:.1f} %", 100 * rate / best)
                 : std::string("-"),
        percent(bubble), formatBytes(peakOf(stages)), percent(gap),
        price.is_null() ? std::string("-")
                        : fmt::format("{:.4g}", price.get<double>())})
    cells.push_back(cell);
  return cells;
}

void printTable(const std::vector<Row> &rows) {
  double best = 0;
  for (const Row &row : rows)
    best = std::max(best, row.hasPlan() ? row.samplesPerSecond() : 0);
  std::vector<Cells> table{{"model", "cluster", "options", "stages", "step",
                            "samples/s", "of best", "bubble", "peak memory",
                            "gap", "price a step"}};
  for (const Row &row : rows)
    table.push_back(cellsOf(row, best));
  // The reason why there is no plan runs on to the end of its line.
  std::vector<size_t> widths(table.front().size());
  for (const Cells &cells : table)
    for (size_t c = 0; c < cells.size(); ++c)
      if (cells.size() == widths.size() || c + 1 < cells.size())
        widths[c] = std::max(widths[c], cells[c].size());
  bool withOptions = std::any_of(rows.begin(), rows.end(), [](const Row &row) {
    return !row.options.empty();
  });
  bool withPrices = std::any_of(rows.begin(), rows.end(), [](const Row &row) {
    return row.hasPlan() && !row.outcome.report.at("price_per_step").is_null();
  });
  if (!withPrices)
    for (Cells &cells : table)
      if (cells.size() == widths.size())
        cells.pop_back();
  for (const Cells &cells : table) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c == 2 && !withOptions)
        continue;
      line += c + 1 == cells.size()
                  ? cells[c]
                  : fmt::format("{:<{}}", cells[c], widths[c] + 2);
    }
    std::cout << line << '\n';
  }
}

void printJson(const std::vector<Row> &rows) {
  ordered_json list = ordered_json::array();
  for (const Row &row : rows) {
    ordered_json entry{{"model", row.model},
                       {"cluster", row.cluster},
                       {"options", row.options},
                       {"exit_code", row.outcome.code},
                       {"messages", row.outcome.messages}};
    entry["samples_per_s"] =
        row.hasPlan() ? ordered_json(row.samplesPerSecond()) : nullptr;
    entry["report"] = row.outcome.report;
    list.push_back(std::move(entry));
  }
  std::cout << list.dump(2) << '\n';
}

int fault(const std::string &text) {
  std::cerr << "taktc: error: " << text << '\n';
  return int(ExitCode::Usage);
}

} // namespace

int takt::compare(const CompareOptions &options) try {
  std::vector<std::string> models, clusters, sets = options.sets;
  for (const std::string &file : options.files)
    (isModel(file) ? models : clusters).push_back(file);
  if (models.empty() || clusters.empty())
    return fault(fmt::format("'compare' needs at least one model and one "
                             "cluster, and has no {}",
                             models.empty() ? "model" : "cluster"));
  if (sets.empty())
    sets.emplace_back();
  const size_t count = models.size() * clusters.size() * sets.size();
  if (count > kMostPlans)
    return fault(fmt::format("'compare' makes up to {} plans, these are {}",
                             kMostPlans, count));
  std::vector<CompileOptions> chosen(sets.size());
  for (size_t s = 0; s < sets.size(); ++s)
    if (std::string said = readSet(sets[s], chosen[s]); said == "-")
      return int(ExitCode::Usage);
    else if (!said.empty())
      return fault(said);
  std::vector<Row> rows;
  bool anyPlan = false;
  for (const std::string &model : models)
    for (const std::string &cluster : clusters)
      for (size_t s = 0; s < sets.size(); ++s) {
        CompileOptions one = chosen[s];
        one.model = model;
        one.cluster = cluster;
        Row row{model, cluster, sets[s], compileForReport(one)};
        ExitCode code = ExitCode(row.outcome.code);
        // An answer, if no plan; anything else is a fault of what was given.
        if (code != ExitCode::Done && code != ExitCode::Infeasible &&
            code != ExitCode::LimitReached) {
          std::cerr << row.outcome.messages;
          return row.outcome.code;
        }
        anyPlan |= row.hasPlan();
        rows.push_back(std::move(row));
      }
  if (options.json)
    printJson(rows);
  else
    printTable(rows);
  if (!std::cout.flush())
    throw rt::Error("cannot write to standard output");
  return int(anyPlan ? ExitCode::Done : ExitCode::Infeasible);
} catch (const rt::Error &error) {
  std::cerr << "taktc: error: " << error.what() << '\n';
  return int(error.code());
}
