//===- SchemaTest.cpp - the JSON Schemas know the readers' keys --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every key of the readers occurs in the schema and the other way round, so
// that an editor's completion never lies.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Keys.h"
#include "takt/Frontend/Read.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <set>

using namespace takt;

namespace {

nlohmann::json load(const std::string &name) {
  std::ifstream in(std::string(TAKT_SOURCE_DIR) + "/schemas/" + name);
  EXPECT_TRUE(in) << name;
  return nlohmann::json::parse(in);
}

/// The definition of a table: the document itself for the top level.
const nlohmann::json &definition(const nlohmann::json &schema,
                                 const std::string &name) {
  return name == "file" ? schema : schema.at("$defs").at(name);
}

void compareKeys(const std::string &file, const std::vector<KeyTable> &tables) {
  nlohmann::json schema = load(file);
  EXPECT_EQ(schema.at("$schema"),
            "https://json-schema.org/draft/2020-12/schema");
  std::set<std::string> expectedMaps, maps;
  for (const KeyTable &table : tables) {
    const nlohmann::json &map = definition(schema, table.name);
    std::set<std::string> known(table.keys.begin(), table.keys.end()), stated;
    for (const auto &[key, value] : map.at("properties").items()) {
      stated.insert(key);
      EXPECT_TRUE(value.contains("description") || value.contains("$ref"))
          << file << ": " << table.name << "." << key;
    }
    EXPECT_EQ(known, stated) << file << ": " << table.name;
    EXPECT_EQ(map.at("additionalProperties"), false)
        << file << ": " << table.name;
    if (table.name != "file")
      expectedMaps.insert(table.name);
  }
  for (const auto &[name, value] : schema.at("$defs").items())
    if (value.contains("properties"))
      maps.insert(name);
  EXPECT_EQ(maps, expectedMaps) << file;
}

TEST(SchemaTest, Model) { compareKeys("model.schema.json", modelKeys()); }
TEST(SchemaTest, Cluster) { compareKeys("cluster.schema.json", clusterKeys()); }
TEST(SchemaTest, Profile) { compareKeys("profile.schema.json", profileKeys()); }

TEST(SchemaTest, Words) {
  nlohmann::json schema = load("model.schema.json");
  std::set<std::string> expected, stated;
  for (const KeyTable &table : modelWords()) {
    expected.insert(table.name);
    EXPECT_EQ(schema.at("$defs").at(table.name).at("enum"), table.keys)
        << table.name;
  }
  for (const auto &[name, value] : schema.at("$defs").items())
    if (value.contains("enum"))
      stated.insert(name);
  EXPECT_EQ(stated, expected);
}

TEST(SchemaTest, ReferencesLeadSomewhere) {
  for (const char *file :
       {"model.schema.json", "cluster.schema.json", "profile.schema.json"}) {
    nlohmann::json schema = load(file);
    nlohmann::json flat = schema.flatten();
    for (const auto &[path, value] : flat.items())
      if (path.size() > 5 && path.substr(path.size() - 5) == "/$ref") {
        std::string target = value.get<std::string>().substr(1);
        EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(target)))
            << file << ": " << path;
      }
  }
}

std::string reference() {
  std::ifstream in(std::string(TAKT_SOURCE_DIR) + "/docs/reference/yaml.md");
  EXPECT_TRUE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ReferenceTest, NamesEveryKeyAndWord) {
  std::string text = reference();
  for (const auto *tables :
       {&modelKeys(), &modelWords(), &clusterKeys(), &profileKeys()})
    for (const KeyTable &table : *tables)
      for (const std::string &key : table.keys)
        EXPECT_NE(text.find("`" + key), std::string::npos)
            << table.name << "." << key;
}

TEST(ReferenceTest, ItsFilesAreRead) {
  std::string text = reference(), fence = "```yaml\n";
  int files = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos;
       at = text.find(fence, at)) {
    at += fence.size();
    std::string yaml = text.substr(at, text.find("```", at) - at);
    Diagnostics diags;
    bool fine = yaml.find("\nmodel:") != std::string::npos
                    ? readModelText("doc", yaml, diags).has_value()
                : yaml.find("\ncluster:") != std::string::npos
                    ? readClusterText("doc", yaml, diags).has_value()
                    : readProfileText("doc", yaml, diags).has_value();
    EXPECT_TRUE(fine) << diags.text();
    ++files;
  }
  EXPECT_EQ(files, 3);
}

/// Editors find the schema by this line.
TEST(SchemaTest, ExamplesNameTheirSchema) {
  for (std::string path :
       {"gpt-small.yaml", "gpt-96.yaml", "mlp.yaml", "clusters/a100-8.yaml",
        "clusters/h100-8.yaml", "clusters/h200-8.yaml",
        "clusters/host-2core.yaml"}) {
    std::ifstream in(std::string(TAKT_SOURCE_DIR) + "/examples/" + path);
    std::string line;
    std::getline(in, line);
    bool cluster = path.find('/') != std::string::npos;
    EXPECT_EQ(line, cluster ? "# yaml-language-server: "
                              "$schema=../../schemas/cluster.schema.json"
                            : "# yaml-language-server: "
                              "$schema=../schemas/model.schema.json")
        << path;
  }
}

} // namespace
