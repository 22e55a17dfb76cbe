//===- digest.h - hashes and tokens -----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) over it, by which processes of one
// run know each other and their plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace takt::rt {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
Digest hmacSha256(std::string_view key, std::string_view message);
std::string hex(const Digest &digest);

/// Takes as long whatever the digests hold.
bool equalInConstantTime(const Digest &a, const Digest &b);

/// 32 bytes from the system's random source.
Digest randomDigest();

} // namespace takt::rt
