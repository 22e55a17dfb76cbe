//===- FolderTests.cpp - reading checkpoints, good and damaged ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every damage is found and named, and the newest whole checkpoint is.
//
//===----------------------------------------------------------------------===//

#include "CheckpointFixture.h"

#include "takt-rt/checkpoint/explain.h"
#include "takt-rt/checkpoint/folder.h"
#include "takt-rt/checkpoint/restore.h"
#include "takt-rt/core/error.h"

#include <nlohmann/json.hpp>

namespace takt::rt::test {
namespace {

class Folder : public CheckpointTest {
protected:
  Folder() : plan(tinyPlan({})), arenas(plan) {}

  void saveAll(std::initializer_list<int64_t> steps) {
    CheckpointWriter writer(plan, options(), arenas.memory(), here);
    for (int64_t step : steps)
      ASSERT_EQ(save(writer, arenas, plan, step).error, "");
  }
  std::string faultOf(int64_t step) {
    return errorOf([&] { openCheckpoint(at(step), Check::Contents); });
  }

  Plan plan;
  Arenas arenas;
};

TEST(Manifest, IsReadAsItIsWritten) {
  Plan plan = tinyPlan({2, 2});
  plan.training.seed = ~0ull;
  plan.training.learningRate = 1.0 / 3;
  plan.training.schedule = LrSchedule::Cosine;
  plan.model = "quoted \" \\ é";
  Manifest manifest = manifestOf(plan, "0123456789abcdef");
  manifest.step = 123456789012;
  manifest.samples = 7;
  manifest.data = "text";
  manifest.files = {{"a", 5, 0xdeadbeef}, {"b", 0, 1}};
  manifest.layers.push_back({"core", "attention", {4, 16}});
  std::string text = formatManifest(manifest);
  EXPECT_EQ(formatManifest(parseManifest(text, "again")), text);
  Manifest read = parseManifest(text, "again");
  EXPECT_EQ(read.training.seed, ~0ull);
  EXPECT_EQ(read.training.learningRate, 1.0 / 3);
  EXPECT_EQ(read.files[0].crc, 0xdeadbeefu);
  EXPECT_EQ(read.roles[1].stages, std::vector<int32_t>{1});
  EXPECT_EQ(read.layers.size(), plan.layers.size() + 1);
  EXPECT_EQ(read.layers.back().heads, (std::vector<int64_t>{4, 16}));
  EXPECT_EQ(read.inputs.size(), plan.inputs.size());
}

/// 1e-08 may become 1E-08: no value may change.
TEST(Manifest, EveryFlippedBitIsRefusedOrChangesNothing) {
  Manifest manifest = manifestOf(tinyPlan({}), "0123456789abcdef");
  manifest.files = {{"a", 5, 0xdeadbeef}};
  std::string text = formatManifest(manifest);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] ^= char(1 << bit % 8);
    std::string read = text;
    std::string error =
        errorOf([&] { read = formatManifest(parseManifest(damaged, "file")); });
    if (error.empty())
      EXPECT_EQ(read, text) << bit;
    else
      EXPECT_NE(error.find("'file'"), std::string::npos) << bit;
  }
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_NE(errorOf([&] { parseManifest(text.substr(0, size), "file"); }),
              "");
}

TEST(Manifest, DeepNestingIsRefused) {
  EXPECT_EQ(errorOf([] { parseManifest(std::string(1000000, '['), "file"); }),
            "'file' nests too deeply");
}

TEST(CheckpointName, OnlyItsOwnFormIsAStep) {
  EXPECT_EQ(checkpointName(200), "step-00000200");
  EXPECT_EQ(checkpointName(1234567890), "step-1234567890");
}

TEST_F(Folder, ListsByStepAndNothingElse) {
  for (const char *name :
       {"step-00000010", "step-00000009", "step-1234567890", "step-7",
        "step-0000001x", ".step-00000011.x.tmp", "broken-step-00000012",
        "step-000000013", "step-99999999999999999999"})
    std::filesystem::create_directories(folder + "/" + name);
  overwrite(folder + "/step-00000014", "a file");
  std::vector<int64_t> steps;
  for (const auto &[step, path] : listCheckpoints(folder))
    steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{9, 10, 1234567890}));
  EXPECT_TRUE(listCheckpoints(folder + "/none").empty());
}

TEST_F(Folder, EveryDamagedFileIsNamed) {
  saveAll({1});
  Checkpoint whole = openCheckpoint(at(1), Check::Contents);
  ASSERT_EQ(whole.manifest.files.size(), 5u);
  for (const CheckpointFile &file : whole.manifest.files) {
    std::string path = at(1, file.name), content = contentOf(path);
    for (size_t i = 0; i < content.size(); i += 1 + content.size() / 97) {
      std::string damaged = content;
      damaged[i] ^= 0x10;
      overwrite(path, damaged);
      EXPECT_NE(faultOf(1).find("'" + path + "'"), std::string::npos)
          << file.name << " at " << i << ": " << faultOf(1);
    }
    overwrite(path, content.substr(0, content.size() - 1));
    EXPECT_NE(faultOf(1).find("'" + path + "' has"), std::string::npos);
    overwrite(path, content + "x");
    EXPECT_NE(faultOf(1).find("'" + path + "' has"), std::string::npos);
    std::filesystem::remove(path);
    EXPECT_NE(faultOf(1).find("cannot read '" + path + "'"), std::string::npos);
    overwrite(path, content);
    EXPECT_EQ(faultOf(1), "");
  }
}

TEST_F(Folder, TheNewestThatIsWholeIsFound) {
  saveAll({1, 2, 3});
  EXPECT_EQ(findCheckpoint(folder).checkpoint.manifest.step, 3);
  std::filesystem::remove(at(3, kManifestFile));
  std::string shard = at(2, "optimizer-00002-of-00002.safetensors");
  overwrite(shard, std::string(contentOf(shard).size(), 'x'));
  FoundCheckpoint found = findCheckpoint(folder);
  EXPECT_EQ(found.checkpoint.path, at(1));
  ASSERT_EQ(found.passedOver.size(), 2u);
  EXPECT_EQ(found.passedOver[0].first, at(3));
  EXPECT_NE(found.passedOver[1].second.find("'" + shard + "' is damaged"),
            std::string::npos);
  // One that is named is taken or refused.
  EXPECT_EQ(findCheckpoint(at(1)).checkpoint.manifest.step, 1);
  EXPECT_NE(errorOf([&] { findCheckpoint(at(2)); }).find(shard),
            std::string::npos);
  std::filesystem::remove_all(at(1));
  EXPECT_NE(errorOf([&] {
              findCheckpoint(folder);
            }).find("holds no checkpoint that is whole"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              findCheckpoint(folder + "/none");
            }).find("there is no checkpoint"),
            std::string::npos);
}

TEST_F(Folder, AnotherModelIsRefusedByNames) {
  saveAll({1});
  Checkpoint checkpoint = openCheckpoint(at(1), Check::Contents);
  Plan other = plan;
  other.params[1].name = "fc0.offset";
  other.params[2].shape = {kTinyHidden, kTinyOut};
  CheckpointFit fit = compare(checkpoint, other, "");
  EXPECT_FALSE(fit.samePlan);
  EXPECT_EQ(fit.missing,
            (std::vector<std::string>{"fc0.offset", "fc0.offset.momentum"}));
  EXPECT_EQ(fit.extra,
            (std::vector<std::string>{"fc0.bias", "fc0.bias.momentum"}));
  ASSERT_EQ(fit.shapes.size(), 2u);
  EXPECT_EQ(fit.shapes[0], "'fc1.weight' has the shape [3, 20], not [20, 3]");
  std::string error = errorOf([&] { requireFit(fit, checkpoint, other); });
  for (const char *part : {"it lacks 'fc0.offset'",
                           "the plan does not know 'fc0.bias'", "[20, 3]"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST_F(Folder, ChangesOfTheTrainingAreSaid) {
  saveAll({1});
  Checkpoint checkpoint = openCheckpoint(at(1), Check::Contents);
  EXPECT_TRUE(compare(checkpoint, plan, "0123456789abcdef").samePlan);
  EXPECT_TRUE(compare(checkpoint, plan, "").changes.empty());
  TinyOptions larger;
  larger.microBatches = 2;
  Plan other = tinyPlan(larger);
  other.training.learningRate = 0.5;
  CheckpointFit fit = compare(checkpoint, other, "");
  EXPECT_TRUE(fit.fits());
  ASSERT_EQ(fit.changes.size(), 3u);
  EXPECT_EQ(fit.changes[0], "the global batch was 16 and is 8");
  EXPECT_EQ(fit.changes[1], "the number of micro-batches was 4 and is 2");
}

// With the same tensors: of other layers something else would be trained.
TEST_F(Folder, AnotherModelWithTheSameTensors) {
  saveAll({1});
  Checkpoint checkpoint = openCheckpoint(at(1), Check::Contents);
  Plan other = plan;
  other.model = "renamed";
  ASSERT_FALSE(other.inputs.empty());
  other.inputs[0].shape.push_back(2);
  CheckpointFit fit = compare(checkpoint, other, "");
  EXPECT_TRUE(fit.fits());
  ASSERT_EQ(fit.changes.size(), 2u);
  EXPECT_EQ(fit.changes[0],
            "the model was '" + plan.model + "' and is 'renamed'");
  EXPECT_NE(fit.changes[1].find("a sample of '"), std::string::npos);

  ASSERT_FALSE(other.layers.empty());
  other.layers.back().name += "s"; // alone it changes nothing
  EXPECT_TRUE(compare(checkpoint, other, "").fits());
  other.layers.back().kind = "another";
  fit = compare(checkpoint, other, "");
  ASSERT_EQ(fit.shapes.size(), 1u);
  EXPECT_NE(fit.shapes[0].find(" and is another"), std::string::npos)
      << fit.shapes[0];
  other.layers.pop_back();
  EXPECT_EQ(compare(checkpoint, other, "").shapes.size(), 1u);

  checkpoint.manifest.layers = {{"core", "attention", {4, 16}}};
  EXPECT_NE(compare(checkpoint, plan, "")
                .shapes.at(0)
                .find("was attention with 4 heads of 16"),
            std::string::npos);
  // Written before there were such lists.
  checkpoint.manifest.layers.clear();
  checkpoint.manifest.inputs.clear();
  EXPECT_TRUE(compare(checkpoint, other, "").fits());
}

TEST_F(Folder, TheReportSaysWhatEachRankLoads) {
  saveAll({4});
  Plan other = tinyPlan({1, 2});
  CheckpointReport report = explainCheckpoint(findCheckpoint(folder), &other);
  auto json = nlohmann::json::parse(toJson(report));
  EXPECT_EQ(json["step"], 4);
  EXPECT_EQ(json["tensors"].size(), 6u);
  EXPECT_EQ(json["fit"]["fits"], true);
  ASSERT_EQ(json["fit"]["ranks"].size(), 2u);
  size_t loads = 0;
  for (const auto &file : json["fit"]["ranks"][1]["loads"])
    loads += file["tensors"].size();
  EXPECT_EQ(loads, 6u);
  EXPECT_NE(printText(report).find("ranks 0-1"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(toJson(
                explainCheckpoint(findCheckpoint(folder), nullptr)))["fit"],
            nullptr);
}

} // namespace
} // namespace takt::rt::test
