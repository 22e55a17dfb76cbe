//===- CountedNew.h - allocations of a thread -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Replaces the program's operator new by one that counts, so a program that
// links this has no other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace takt::rt::test {

/// Calls of operator new, of any form, on this thread so far.
uint64_t allocationsHere();

} // namespace takt::rt::test
