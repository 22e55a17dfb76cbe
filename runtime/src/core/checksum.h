//===- checksum.h - the checksum behind a plan ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan file ends with "CRCC" and the CRC-32C of all bytes before it,
// little-endian.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace takt::rt {

void appendChecksum(std::vector<uint8_t> &bytes);

/// Takes the checksum off the size of the content; false if it has none. Throws
/// `Error(BadInput)` if the bytes before it have another; `file` stands before.
bool takeChecksum(const uint8_t *bytes, size_t &size, const std::string &file);

} // namespace takt::rt
