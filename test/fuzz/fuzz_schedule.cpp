//===- fuzz_schedule.cpp - schedule files --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Text that may be a schedule in CSV. What is read is written again without
// loss; a schedule that is right for the placement it shows stays so when its
// transfers are inserted.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "yaml_checks.h"

#include "takt/Schedule/File.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  return {"0F0",
          "0B0",
          "0I0",
          "0W0",
          "1BW0",
          "0SEND_F0",
          "1RECV_F0",
          "1SEND_B0",
          "0RECV_B0",
          "0UNSHARD",
          "0RESHARD",
          "0REDUCE_GRAD",
          "(0F0;0B0)OVERLAP_F_B",
          "1SEND_B0_0RECV_F1",
          "F0_s1",
          ",",
          ",,",
          "\n",
          "\r\n",
          " ",
          "\"",
          ";",
          "(",
          ")",
          "_",
          "\t",
          "\xef\xbb\xbf",
          "\xff"};
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  std::string text = asText(bytes, size);
  Diagnostics diags;
  std::optional<ScheduleFile> file = parseScheduleCsv("mutant", text, diags);
  if (!file) {
    checkRefusal(diags, "mutant", text);
    return 0;
  }
  require(!diags.hasErrors(), "what is accepted has no faults");
  std::string written = writeScheduleCsv(*file);
  Diagnostics again;
  std::optional<ScheduleFile> read = parseScheduleCsv("again", written, again);
  if (!read)
    broken("what is written is read, but: " + again.text());
  require(writeScheduleCsv(*read) == written,
          "a schedule is read back as it is written");
  Diagnostics order;
  if (!verifyFile(*file, order)) {
    checkRefusal(order, "mutant", text);
    return 0;
  }
  if (file->hasTransfers())
    return 1;
  Diagnostics inserted;
  if (!verifyFile(insertTransfers(*file), inserted))
    broken("a right schedule has right transfers, but: " + inserted.text());
  return 1;
}
