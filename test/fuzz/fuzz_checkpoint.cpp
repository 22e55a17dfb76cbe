//===- fuzz_checkpoint.cpp - manifests of checkpoints --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// JSON that may be a checkpoint's manifest. Its checksum refuses nearly all
// mutants, so each is tried a second time with a checksum that is right.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "plan_checks.h"

#include "takt-rt/checkpoint/manifest.h"
#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {"\"format\"",  "\"step\"",   "\"samples\"",
          "\"seed\"",    "\"plan\"",   "\"roles\"",
          "\"files\"",   "\"crc32c\"", "\"adamw\"",
          "\"cosine\"",  "\"layers\"", "\"heads\"",
          "\"inputs\"",  "null",       "1e400",
          "-1",          "{",          "}",
          "[",           "]",          ",",
          ":",           "\"",         "\"..\"",
          "\"a/b\"",     "\\u0000",    "18446744073709551615",
          "\"00000000\""};
}

static int tryManifest(const std::string &text) {
  rt::Manifest manifest;
  try {
    manifest = rt::parseManifest(text, "mutant");
  } catch (const rt::Error &error) {
    fuzz::checkRefusal(error.what(), "mutant");
    return 0;
  }
  for (const rt::CheckpointFile &file : manifest.files)
    fuzz::require(file.name.find('/') == std::string::npos && file.name != "..",
                  "a file lies in its checkpoint");
  std::string again = rt::formatManifest(manifest);
  fuzz::require(rt::formatManifest(rt::parseManifest(again, "again")) == again,
                "a manifest is read back as it is written");
  return 1;
}

/// The text with the checksum that belongs to it; empty when it has no place.
static std::string withChecksum(const std::string &text) {
  using nlohmann::ordered_json;
  auto flat = [](int depth, ordered_json::parse_event_t, ordered_json &) {
    return depth <= 8;
  };
  ordered_json object = ordered_json::parse(text, flat, false);
  if (!object.is_object())
    return "";
  object.erase("crc32c");
  auto compact = [&] {
    return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  uint32_t crc = rt::crc32c(compact());
  object["crc32c"] = fmt::format("{:08x}", crc);
  return compact();
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  std::string text = asText(bytes, size);
  int taken = tryManifest(text);
  std::string right = withChecksum(text);
  return right.empty() ? taken : tryManifest(right);
}
