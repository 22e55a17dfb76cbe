//===- file.h - plans in files ----------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The binary form is FlatBuffers by runtime/schema/plan.fbs. Equal plans give
// equal bytes. What a reader returns has passed `checkStructure`,
// and if it carries a certificate it holds: `checkCertificate`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace takt::rt {

/// The binary form. The plan must pass `checkStructure`.
std::vector<uint8_t> serialize(const Plan &plan);

/// FNV-1a (64 bits) of the binary form: equal for equal plans. It tells one
/// plan from another and is no proof against malice.
uint64_t planHash(const Plan &plan);

/// 16 hexadecimal digits, as reports and files have it.
std::string planHashText(uint64_t hash);

/// How much of a plan is shown to hold before it is handed out: with `Form` no
/// more than that it can be read; with `Structure` that it is sound, and holds
/// if it carries a certificate; with `Proof` that it holds.
enum class Reading : uint8_t { Form, Structure, Proof };

/// Reads the binary form; `name` stands in messages. Throws `Error(BadInput)`
/// for anything that is not a sound plan, and for a format or required feature
/// newer than this reader. `Proof` is as `Structure`.
Plan deserialize(const uint8_t *bytes, size_t size, const std::string &name,
                 Reading reading = Reading::Structure);
inline Plan deserialize(const std::vector<uint8_t> &bytes,
                        const std::string &name) {
  return deserialize(bytes.data(), bytes.size(), name);
}

/// True if the bytes claim to be the binary form.
bool isPlanFile(const uint8_t *bytes, size_t size);

/// Reads a file in binary or text form; "-" is standard input. Throws
/// `Error(BadInput)`, for a failed proof with its text.
Plan readPlan(const std::string &path, Reading reading = Reading::Proof);

/// The plan in a file's content; `name` stands in messages.
Plan parsePlan(const std::string &content, const std::string &name,
               Reading reading = Reading::Proof);

/// True if the content claims to be a plan, in binary or text form.
bool looksLikePlan(const std::string &content);

/// Writes the binary form, as a whole or not at all; "-" is standard output.
void writePlan(const Plan &plan, const std::string &path);

/// The bytes of a file ("-": standard input). Throws `Error(BadInput)`.
std::string readFile(const std::string &path);

/// The same, but only the beginning (64 KiB) of a file that `wanted` refuses by
/// its beginning, so that an endless one is not read on.
std::string readFileIf(const std::string &path,
                       bool (*wanted)(const std::string &beginning));

/// Writes a file through a temporary one beside it, so that readers see the old
/// or the new content; "-" is standard output. Throws `Error(BadInput)`.
void writeFile(const std::string &path, const std::string &content);
/// The temporary one, for those who may have to remove it.
std::string temporaryName(const std::string &path);

} // namespace takt::rt
