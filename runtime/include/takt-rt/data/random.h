//===- random.h - counter-based random numbers ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Random numbers that are a function of a seed, the name of what they are for
// and a position, so that a value does not depend on which rank asks for it, in
// what order, or how the model is cut. All arithmetic is modulo 2^64.
//
//   fnv(name)       FNV-1a: h = 14695981039346656037; for each byte b:
//                   h = (h xor b) * 1099511628211
//   mix(z)          z = (z xor z >> 30) * 0xBF58476D1CE4E5B9
//                   z = (z xor z >> 27) * 0x94D049BB133111EB
//                   z xor z >> 31
//   key(seed, name) mix(seed + 0x9E3779B97F4A7C15) xor fnv(name)
//   draw(key, i)    mix(key + (i + 1) * 0x9E3779B97F4A7C15)
//   uniform(key, i) (draw(key, i) >> 11) * 2^-53, in [0, 1)
//   normal(key, i)  sqrt(-2 ln(1 - uniform(key, 2 i)))
//                   * cos(2 pi uniform(key, 2 i + 1))
//
// draw(key, 0), draw(key, 1), ... is the SplitMix64 sequence from state `key`
// (Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195); normal is Box and
// Muller 1958, the second of its pair left out so that each value stands alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace takt::rt {

uint64_t fnv1a64(std::string_view name);
uint64_t streamKey(uint64_t seed, std::string_view name);
uint64_t draw(uint64_t key, uint64_t index);
double uniform(uint64_t key, uint64_t index);
double normal(uint64_t key, uint64_t index);

} // namespace takt::rt
