//===- crc32c.h - checksum of what is stored and sent -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// CRC-32C (Castagnoli, Brauer and Herrmann 1993, doi 10.1109/26.231911; the
// parameters of RFC 3720): polynomial 0x1EDC6F41 reflected, first and last
// value inverted. "123456789" has 0xE3069283. It tells damage, not malice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace takt::rt {

/// The checksum of what `crc` covers followed by `bytes`; 0 covers nothing.
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);

inline uint32_t crc32c(std::string_view bytes) {
  return crc32c(0, bytes.data(), bytes.size());
}

/// The same by tables, on every machine; for tests and where the processor has
/// no instruction for it.
uint32_t crc32cByTable(uint32_t crc, const void *bytes, size_t size);

} // namespace takt::rt
