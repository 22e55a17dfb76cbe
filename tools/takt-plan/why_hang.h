//===- why_hang.h - takt-plan why-hang --------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Why a run stopped, from what its ranks recorded.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

/// Adds `why-hang`; when it is chosen it sets `chosen`.
void addWhyHang(CLI::App &app, std::function<void()> &chosen);
