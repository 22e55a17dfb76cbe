//===- DigestTests.cpp - hashes and tokens --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Against the published examples of FIPS 180-4 and RFC 4231.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/digest.h"

#include <gtest/gtest.h>

namespace takt::rt {
namespace {

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb924"
                             "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223"
                                "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijk"
                       "ijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039"
            "a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67"
            "f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EveryLengthAroundABlockDiffers) {
  for (size_t n = 50; n < 140; ++n)
    EXPECT_NE(sha256(std::string(n, 'x')), sha256(std::string(n + 1, 'x')));
}

TEST(Hmac, PublishedExamples) {
  EXPECT_EQ(hex(hmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b"
            "881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c7"
            "5a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key "
                           "First")),
            "60e431591ee0b67f0d8a26aacbf5b77f"
            "8e0bc6213728c5140546040f0ee37f54");
}

TEST(Digest, ComparesEveryByte) {
  Digest a = sha256("a");
  for (size_t i = 0; i < a.size(); ++i) {
    Digest b = a;
    EXPECT_TRUE(equalInConstantTime(a, b));
    b[i] ^= 1;
    EXPECT_FALSE(equalInConstantTime(a, b)) << "byte " << i;
  }
}

TEST(Digest, RandomOnesDiffer) { EXPECT_NE(randomDigest(), randomDigest()); }

} // namespace
} // namespace takt::rt
