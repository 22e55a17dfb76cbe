//===- crc32c.cpp - checksum of what is stored and sent -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Eight tables take eight bytes at once (Kounavis and Berry 2005, doi
// 10.1109/ISCC.2005.18); x86 has an instruction since SSE 4.2.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/crc32c.h"

#include <array>
#include <cstring>

namespace takt::rt {

namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables makeTables() {
  constexpr uint32_t kReflected = 0x82F63B78;
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ ((crc & 1) != 0 ? kReflected : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  return tables;
}
constexpr Tables kTables = makeTables();

uint64_t littleEndian(const unsigned char *at) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i)
    word = word << 8 | at[i];
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t
byInstruction(uint32_t crc, const void *bytes, size_t size) {
  const auto *at = static_cast<const unsigned char *>(bytes);
  uint64_t state = ~crc;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state = __builtin_ia32_crc32di(state, word);
  }
  for (; size > 0; ++at, --size)
    state = __builtin_ia32_crc32qi(static_cast<uint32_t>(state), *at);
  return ~static_cast<uint32_t>(state);
}
#endif

} // namespace

uint32_t crc32cByTable(uint32_t crc, const void *bytes, size_t size) {
  const auto *at = static_cast<const unsigned char *>(bytes);
  uint32_t state = ~crc;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word = littleEndian(at) ^ state;
    state = 0;
    for (int k = 0; k < 8; ++k)
      state ^= kTables[7 - k][word >> (8 * k) & 0xff];
  }
  for (; size > 0; ++at, --size)
    state = state >> 8 ^ kTables[0][(state ^ *at) & 0xff];
  return ~state;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size) {
#if defined(__x86_64__)
  static const bool hasInstruction = __builtin_cpu_supports("sse4.2");
  if (hasInstruction)
    return byInstruction(crc, bytes, size);
#endif
  return crc32cByTable(crc, bytes, size);
}

} // namespace takt::rt
