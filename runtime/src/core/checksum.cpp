//===- checksum.cpp - the checksum behind a plan ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Written last and compared first, before anything is read by offsets.
//
//===----------------------------------------------------------------------===//
#include "checksum.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace takt::rt {

static constexpr std::string_view kMark = "CRCC";
static constexpr size_t kBytes = 8; ///< of mark and sum

void appendChecksum(std::vector<uint8_t> &bytes) {
  uint32_t sum = crc32c(0, bytes.data(), bytes.size());
  bytes.insert(bytes.end(), kMark.begin(), kMark.end());
  for (int shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<uint8_t>(sum >> shift));
}

bool takeChecksum(const uint8_t *bytes, size_t &size, const std::string &file) {
  if (size < kBytes)
    return false;
  size_t end = size - kBytes;
  if (!std::equal(kMark.begin(), kMark.end(), bytes + end))
    return false;
  uint32_t stated = 0;
  for (int i = 0; i < 4; ++i)
    stated |= static_cast<uint32_t>(bytes[size - 4 + i]) << 8 * i;
  uint32_t found = crc32c(0, bytes, end);
  if (found != stated)
    throw Error(
        fmt::format("{}: damaged: the checksum of its first {} bytes is "
                    "{:08x}, byte {} states {:08x}",
                    file, end, found, size - 4, stated));
  size = end;
  return true;
}

} // namespace takt::rt
