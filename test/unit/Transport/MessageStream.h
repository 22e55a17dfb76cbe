//===- MessageStream.h - random messages that both ends know ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A stream of messages of random sizes and contents by a seed, so that the
// receiver can tell each byte; every third is added instead of copied.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/transport/mailbox.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace takt::rt::test {

template <typename Message>
void finishMessage(Message &message, Bell &bell) {
  for (;;) {
    uint32_t rings = bell.rings();
    if (message.poll())
      return;
    bell.wait(rings, 0);
  }
}

/// Message `index`: whole floats, sometimes none.
inline std::vector<float> messageOf(uint32_t seed, int index) {
  std::mt19937 random(seed * 1000003u + uint32_t(index));
  std::vector<float> values(random() % 5 == 0 ? 0 : random() % 600);
  for (float &value : values)
    value = float(random() % 1000);
  return values;
}

inline Take takeOf(int index) {
  return index % 3 == 2 ? Take::AddFloats : Take::Copy;
}

inline void sendStream(Mailbox &box, Bell &bell, uint32_t seed, int count) {
  for (int i = 0; i < count; ++i) {
    std::vector<float> values = messageOf(seed, i);
    Sending send(box, values.data(), Bytes(values.size() * sizeof(float)));
    finishMessage(send, bell);
  }
}

/// Messages that are not what was sent.
inline int wrongInStream(Mailbox &box, Bell &bell, uint32_t seed, int count) {
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    std::vector<float> expected = messageOf(seed, i);
    std::vector<float> values(expected.size(), 1);
    if (takeOf(i) == Take::AddFloats)
      for (float &value : expected)
        value += 1;
    Receiving recv(box, values.data(), Bytes(values.size() * sizeof(float)),
                   takeOf(i));
    finishMessage(recv, bell);
    wrong += values != expected;
  }
  return wrong;
}

} // namespace takt::rt::test
