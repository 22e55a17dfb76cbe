//===- safetensors_header.cpp - the header of tensor files ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A header is foreign input: it is checked as a whole, every number before it
// is used.
//
//===----------------------------------------------------------------------===//

#include "safetensors_header.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace takt::rt::safetensors {

namespace {
using nlohmann::json;

constexpr FormatInfo kFormats[] = {{"F32", Format::F32, 4},
                                   {"F64", Format::F64, 8},
                                   {"F16", Format::F16, 2},
                                   {"BF16", Format::BF16, 2},
                                   {"I32", Format::I32, 4}};

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kMostAxes = 32;

[[noreturn]] void refuse(const std::string &file, const std::string &why) {
  throw Error(fmt::format("'{}' is no safetensors file: {}", file, why));
}

[[noreturn]] void refuseTensor(const std::string &file,
                               const std::string &tensor,
                               const std::string &why) {
  throw Error(fmt::format("'{}': tensor '{}' {}", file, tensor, why));
}

uint64_t littleEndian(const char *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// The header's JSON; refuses names given twice, which a JSON map would hide.
json parseJson(const std::string &text, const std::string &file) {
  std::set<std::string> names;
  std::string twice;
  json::parser_callback_t callback = [&](int depth, json::parse_event_t event,
                                         json &parsed) {
    // A fault is shown with its JSON, and printing that recurses.
    constexpr int kMostDepth = 8;
    if (depth > kMostDepth)
      refuse(file, "its header nests too deeply");
    if (event == json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  json header;
  try {
    header = json::parse(text, callback);
  } catch (const json::exception &) {
    refuse(file, "its header is not JSON");
  }
  if (!twice.empty())
    refuseTensor(file, twice, "stands twice in the header");
  if (!header.is_object())
    refuse(file, "its header is not a JSON object");
  return header;
}

/// A non-negative integer below 2^63.
bool isSize(const json &value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max());
}

Entry parseEntry(const std::string &name, const json &item, uint64_t dataBytes,
                 const std::string &file) {
  auto wrong = [&](const std::string &why) { refuseTensor(file, name, why); };
  if (!item.is_object() || !item.contains("dtype") || !item.contains("shape") ||
      !item.contains("data_offsets"))
    wrong("lacks 'dtype', 'shape' or 'data_offsets'");
  Entry entry;
  entry.name = name;
  const json &dtype = item["dtype"];
  const FormatInfo *format = std::find_if(
      std::begin(kFormats), std::end(kFormats), [&](const FormatInfo &f) {
        return dtype.is_string() && dtype == f.name;
      });
  if (format == std::end(kFormats))
    wrong(
        fmt::format("has the dtype {}; F32, F64, F16, BF16 and I32 are read",
                    dtype.dump(-1, ' ', true, json::error_handler_t::replace)));
  entry.format = *format;
  const json &shape = item["shape"];
  if (!shape.is_array() || shape.size() > kMostAxes)
    wrong(fmt::format("has a 'shape' that is no list of at most {} sizes",
                      kMostAxes));
  entry.elements = 1;
  for (const json &extent : shape) {
    if (!isSize(extent))
      wrong("has a 'shape' that is not made of sizes");
    entry.shape.push_back(extent.get<int64_t>());
    if (__builtin_mul_overflow(entry.elements, extent.get<uint64_t>(),
                               &entry.elements))
      wrong("has a 'shape' whose product overflows");
  }
  const json &offsets = item["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !isSize(offsets[0]) ||
      !isSize(offsets[1]))
    wrong("has 'data_offsets' that are no pair of sizes");
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > dataBytes)
    wrong(fmt::format("lies at bytes [{}, {}) of {} bytes of data", entry.begin,
                      entry.end, dataBytes));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(entry.elements, format->bytes, &bytes) ||
      bytes != entry.end - entry.begin)
    wrong(fmt::format("of shape [{}] and dtype {} has {} bytes",
                      fmt::join(entry.shape, ", "), format->name,
                      entry.end - entry.begin));
  return entry;
}

/// Tensors must cover the data from its first to its last byte, each byte once.
void checkCover(std::vector<Entry> &entries, uint64_t dataBytes,
                const std::string &file) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry &a, const Entry &b) {
                     return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
                   });
  uint64_t end = 0;
  for (const Entry &entry : entries) {
    if (entry.begin < end)
      refuseTensor(file, entry.name, "overlaps another tensor");
    if (entry.begin > end)
      refuseTensor(file, entry.name,
                   fmt::format("begins at byte {}, {} bytes after the one "
                               "before it",
                               entry.begin, entry.begin - end));
    end = entry.end;
  }
  if (end != dataBytes)
    refuse(file,
           fmt::format("{} bytes follow its last tensor", dataBytes - end));
}
} // namespace

uint64_t headerBytes(const char *start, uint64_t fileBytes,
                     const std::string &file) {
  constexpr uint64_t kMostHeader = 100'000'000;
  if (fileBytes < 8)
    refuse(file, fmt::format("it has {} bytes", fileBytes));
  uint64_t bytes = littleEndian(start);
  if (bytes > kMostHeader || bytes > fileBytes - 8)
    refuse(file, fmt::format("it says its header has {} bytes, but {} follow",
                             bytes, fileBytes - 8));
  return bytes;
}

Header parseHeader(const std::string &text, uint64_t dataBytes,
                   const std::string &file) {
  Header header;
  json parsed = parseJson(text, file);
  for (const auto &[key, item] : parsed.items()) {
    if (key != kMetadata) {
      header.entries.push_back(parseEntry(key, item, dataBytes, file));
      continue;
    }
    if (!item.is_object() ||
        !std::all_of(item.begin(), item.end(),
                     [](const json &value) { return value.is_string(); }))
      refuse(file, "its '__metadata__' is no map of strings");
    header.metadata = item.get<std::map<std::string, std::string>>();
  }
  checkCover(header.entries, dataBytes, file);
  return header;
}

} // namespace takt::rt::safetensors
