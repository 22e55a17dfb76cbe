//===- takt-opt.cpp - runs passes on text ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads IR, runs the passes that its options name and prints the result: what
// tests of dialects and passes, and people who look into one step, use. All but
// wrong usage is as in mlir-opt.
//
//===----------------------------------------------------------------------===//
#include "../arguments.h"

#include "Coll/CollDialect.h"
#include "Model/ModelDialect.h"
#include "Pipe/PipeDialect.h"
#include "takt-rt/core/error.h"
#include "takt/Transforms/Pipelines.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

namespace {

llvm::cl::opt<std::string> input(llvm::cl::Positional,
                                 llvm::cl::desc("<input file>"),
                                 llvm::cl::init("-"));
llvm::cl::opt<std::string> output("o", llvm::cl::desc("Output filename"),
                                  llvm::cl::value_desc("filename"),
                                  llvm::cl::init("-"));

/// What LLVM's option reader said, in the words of the other tools.
std::string faultOf(llvm::StringRef said) {
  said.consume_front("takt-opt: ");
  auto [first, rest] = said.split('\n');
  first = first.split("  Try: ").first;
  if (first.consume_front("Unknown command line argument ")) {
    std::string fault = ("unknown option " + first.rtrim('.')).str();
    llvm::StringRef hint = rest.split("Did you mean ").second;
    if (hint.starts_with("'--"))
      fault += ("; did you mean " + hint.split('\n').first).str();
    return fault;
  }
  std::string name;
  if (first.consume_front("for the ")) {
    auto [option, fault] = first.split(" option: ");
    name = ("'" + option + "': ").str();
    first = fault;
  }
  std::string fault = first.rtrim('!').str();
  if (!fault.empty())
    fault[0] = llvm::toLower(fault[0]);
  return name + fault;
}

/// What is written to standard error while it lives: some faults of values go
/// nowhere else.
class Overheard {
public:
  Overheard() : kept(dup(STDERR_FILENO)), file(memfd_create("faults", 0)) {
    if (file >= 0)
      dup2(file, STDERR_FILENO);
  }
  ~Overheard() { end(); }
  std::string end() {
    if (kept < 0)
      return "";
    dup2(kept, STDERR_FILENO);
    close(kept);
    kept = -1;
    std::string text(size_t(std::max<off_t>(0, lseek(file, 0, SEEK_END))), 0);
    ssize_t got = pread(file, text.data(), text.size(), 0);
    text.resize(size_t(std::max<ssize_t>(0, got)));
    close(file);
    return text;
  }

private:
  int kept, file;
};

int fail(const std::string &what, takt::rt::ExitCode code) {
  llvm::errs() << "takt-opt: error: " << what << '\n';
  return int(code);
}

} // namespace

int main(int argc, char **argv) {
  takt::arguments::claimStandardStreams();
  mlir::DialectRegistry registry;
  registry.insert<takt::model::ModelDialect, takt::pipe::PipeDialect,
                  takt::coll::CollDialect>();
  takt::registerTaktPasses();
  takt::registerTaktPipeline();
  std::string header =
      mlir::registerCLIOptions("Takt's dialects and passes\n", registry);
  Overheard overheard;
  bool parsed =
      llvm::cl::ParseCommandLineOptions(argc, argv, header, &llvm::errs());
  std::string said = overheard.end();
  if (!parsed)
    return fail(faultOf(said), takt::rt::ExitCode::Usage);
  llvm::errs() << said;
  std::string fault;
  if (input != "-" && !mlir::openInputFile(input, &fault))
    return fail(fault, takt::rt::ExitCode::BadInput);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
