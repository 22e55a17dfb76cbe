//===- digest.cpp - hashes and tokens -------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// SHA-256 by the book: one block of 64 bytes at a time.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/digest.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/random.h>

namespace takt::rt {

static constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t value, int bits) {
  return value >> bits | value << (32 - bits);
}

static void addBlock(uint32_t (&state)[8], const uint8_t *block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 |
           uint32_t(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t v[8];
  std::memcpy(v, state, sizeof(v));
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
    uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    uint32_t t1 = v[7] + s1 + choice + kRound[i] + w[i];
    uint32_t s0 = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
    uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    for (int j = 7; j > 0; --j)
      v[j] = v[j - 1];
    v[4] += t1;
    v[0] = t1 + s0 + majority;
  }
  for (int i = 0; i < 8; ++i)
    state[i] += v[i];
}

Digest sha256(std::string_view bytes) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto *at = reinterpret_cast<const uint8_t *>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 64; at += 64, left -= 64)
    addBlock(state, at);
  uint8_t last[128] = {};
  std::memcpy(last, at, left);
  last[left] = 0x80;
  size_t end = left < 56 ? 64 : 128;
  uint64_t bits = uint64_t(bytes.size()) * 8;
  for (int i = 0; i < 8; ++i)
    last[end - 1 - i] = uint8_t(bits >> (8 * i));
  for (size_t i = 0; i < end; i += 64)
    addBlock(state, last + i);
  Digest digest;
  for (int i = 0; i < 32; ++i)
    digest[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

static std::string_view view(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

Digest hmacSha256(std::string_view key, std::string_view message) {
  Digest shortKey;
  if (key.size() > 64) {
    shortKey = sha256(key);
    key = view(shortKey);
  }
  std::string inner(64, '\x36'), outer(64, '\x5c');
  for (size_t i = 0; i < key.size(); ++i) {
    inner[i] = char(inner[i] ^ key[i]);
    outer[i] = char(outer[i] ^ key[i]);
  }
  inner += message;
  Digest digest = sha256(inner);
  outer += view(digest);
  return sha256(outer);
}

std::string hex(const Digest &digest) {
  std::string text;
  for (uint8_t byte : digest)
    text += fmt::format("{:02x}", byte);
  return text;
}

bool equalInConstantTime(const Digest &a, const Digest &b) {
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = difference | (a[i] ^ b[i]);
  return difference == 0;
}

Digest randomDigest() {
  Digest digest;
  size_t got = 0;
  while (got < digest.size()) {
    ssize_t count = getrandom(digest.data() + got, digest.size() - got, 0);
    if (count < 0 && errno != EINTR)
      throw Error(fmt::format("the system gives no random bytes: {}",
                              std::strerror(errno)),
                  ExitCode::Internal);
    got += count > 0 ? size_t(count) : 0;
  }
  return digest;
}

} // namespace takt::rt
