//===- timeline_page.cpp - runs as a page -----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Puts style, body, data and scripts into one file that needs no other.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/timeline.h"

#include "page.h"
#include "timeline.h"

namespace takt::rt {

void writeTimelineHtml(std::ostream &out, const Plan &plan, const Runs &runs) {
  checkRecords(plan, runs.predicted);
  checkRecords(plan, runs.measured);
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      << "<title>" << xmlEscaped(plan.model) << " timeline</title>\n<style>\n"
      << kPageStyle << "</style></head>\n<body>\n"
      << kPageBody << "<script id=\"data\" type=\"application/json\">\n"
      << pageData(plan, runs) << "</script>\n";
  for (const char *script : kPageScripts)
    out << "<script>\n" << script << "</script>\n";
  out << "</body></html>\n";
}

} // namespace takt::rt
