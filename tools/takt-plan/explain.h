//===- explain.h - takt-plan explain ... ------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What is asked of things that belong to a plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

/// Adds `explain` and its subcommands; the one that is chosen sets `chosen`.
void addExplain(CLI::App &app, std::function<void()> &chosen);
