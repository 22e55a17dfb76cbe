//===- TextFile.cpp - reading input files ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads in blocks and stops at the limit, so that an endless device file does
// no harm; then a single pass over the bytes.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <system_error>

using namespace takt;

namespace {

/// Reads up to one byte more than the limit.
bool readBounded(std::istream &in, std::string &text) {
  char block[65536];
  while (text.size() <= kMaxTextBytes) {
    in.read(block, sizeof block);
    text.append(block, static_cast<std::size_t>(in.gcount()));
    if (!in)
      return in.eof();
  }
  return true;
}

/// Length of the well-formed UTF-8 sequence at `i` (Unicode 15, table 3-7);
/// 0 if there is none.
std::size_t utf8Length(const std::string &text, std::size_t i) {
  auto byte = [&](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  auto within = [](unsigned value, unsigned low, unsigned high) {
    return value >= low && value <= high;
  };
  unsigned first = byte(i);
  if (first < 0x80)
    return 1;
  std::size_t length = 0;
  unsigned low = 0x80, high = 0xBF; // of the second byte
  if (within(first, 0xC2, 0xDF)) {
    length = 2;
  } else if (within(first, 0xE0, 0xEF)) {
    length = 3;
    low = first == 0xE0 ? 0xA0 : 0x80;  // no overlong forms
    high = first == 0xED ? 0x9F : 0xBF; // no surrogates
  } else if (within(first, 0xF0, 0xF4)) {
    length = 4;
    low = first == 0xF0 ? 0x90 : 0x80;
    high = first == 0xF4 ? 0x8F : 0xBF;
  }
  if (!length || !within(byte(i + 1), low, high))
    return 0;
  for (std::size_t k = 2; k < length; ++k)
    if (!within(byte(i + k), 0x80, 0xBF))
      return 0;
  return length;
}

} // namespace

std::optional<std::string> takt::readTextFile(const std::string &path,
                                              Diagnostics &diags) {
  std::string text;
  bool complete = false;
  if (path == "-") {
    complete = readBounded(std::cin, text);
  } else {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      diags.error({path, 0, 0}, "is a folder, not a file");
      return std::nullopt;
    }
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      diags.error({path, 0, 0},
                  fmt::format("cannot open the file: {}",
                              errno ? std::strerror(errno) : "unknown reason"));
      return std::nullopt;
    }
    complete = readBounded(in, text);
  }
  if (!complete) {
    diags.error({path, 0, 0}, "cannot read the file");
    return std::nullopt;
  }
  if (text.size() > kMaxTextBytes) {
    diags.error({path, 0, 0}, fmt::format("the file is larger than {} MiB",
                                          kMaxTextBytes >> 20));
    return std::nullopt;
  }
  return text;
}

bool takt::checkText(const std::string &file, std::string &text,
                     Diagnostics &diags) {
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0)
    text.erase(0, 3);
  if (text.size() > kMaxTextBytes) {
    diags.error({file, 0, 0}, fmt::format("the text is larger than {} MiB",
                                          kMaxTextBytes >> 20));
    return false;
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    diags.error({file, 1, 1}, "the file is empty");
    return false;
  }
  int line = 1;
  std::size_t lineStart = 0;
  for (std::size_t i = 0; i < text.size();) {
    unsigned char c = text[i];
    SourceLoc loc{file, line, static_cast<int>(i - lineStart) + 1};
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
      diags.error(loc, fmt::format("not a text file: byte 0x{:02x}", c));
      return false;
    }
    std::size_t length = utf8Length(text, i);
    if (!length) {
      diags.error(loc, fmt::format("not valid UTF-8: byte 0x{:02x}", c));
      return false;
    }
    i += length;
    if (c == '\n') {
      ++line;
      lineStart = i;
    }
  }
  return true;
}
