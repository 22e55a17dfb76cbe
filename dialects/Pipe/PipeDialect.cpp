//===- PipeDialect.cpp - the pipe dialect and its attributes --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Registration, and parsing, printing and checking of the attributes.
//
//===----------------------------------------------------------------------===//
#include "Pipe/PipeDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

#include <charconv>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace takt;
using namespace takt::pipe;

#include "Pipe/PipeDialect.cpp.inc"
#include "Pipe/PipeEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Pipe/PipeAttrs.cpp.inc"

void PipeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Pipe/PipeAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Pipe/PipeOps.cpp.inc"
      >();
}

llvm::hash_code takt::hash_value(const CommAction &action) {
  return llvm::hash_combine(static_cast<int>(action.kind), action.stage,
                            static_cast<int>(action.compute), action.microBatch,
                            action.tie, action.peer, action.part, action.wait);
}

//===----------------------------------------------------------------------===//
// Rates
//===----------------------------------------------------------------------===//

bool Rate::operator==(const Rate &other) const {
  return llvm::bit_cast<uint64_t>(perSecond) ==
         llvm::bit_cast<uint64_t>(other.perSecond);
}

llvm::hash_code takt::pipe::hash_value(const Rate &rate) {
  return llvm::hash_value(llvm::bit_cast<uint64_t>(rate.perSecond));
}

llvm::raw_ostream &takt::pipe::operator<<(llvm::raw_ostream &os,
                                          const Rate &rate) {
  // Up to here every whole number is a double of its own.
  constexpr double exact = 9007199254740992.0;
  double value = rate.perSecond;
  if (value == std::floor(value) && std::fabs(value) < exact &&
      !std::signbit(value))
    return os << static_cast<int64_t>(value);
  char text[32];
  char *end = std::to_chars(text, text + sizeof(text), value).ptr;
  llvm::StringRef digits(text, end - text);
  // MLIR reads a number as a float only if it has a point.
  size_t exponent = digits.find('e');
  os << digits.take_front(exponent);
  if (!digits.contains('.'))
    os << ".0";
  if (exponent != llvm::StringRef::npos)
    os << digits.substr(exponent);
  return os;
}

FailureOr<Rate> FieldParser<Rate>::parse(AsmParser &parser) {
  // Whole numbers and floats have separate parse routines.
  int64_t whole = 0;
  OptionalParseResult result = parser.parseOptionalInteger(whole);
  if (result.has_value()) {
    if (failed(*result))
      return failure();
    return Rate{static_cast<double>(whole)};
  }
  Rate rate;
  if (parser.parseFloat(rate.perSecond))
    return failure();
  return rate;
}

//===----------------------------------------------------------------------===//
// Parts of a cluster
//===----------------------------------------------------------------------===//

/// Plans count the parts of a machine in 32 bits.
static constexpr int64_t kMostParts = std::numeric_limits<int32_t>::max();
/// As in a cluster file: sums over all devices stay countable.
static constexpr int64_t kMostPrice = int64_t(1000000) * 1000000;

LogicalResult DeviceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 llvm::StringRef name, Rate flops,
                                 Rate memoryBandwidth, int64_t memory,
                                 int64_t kernelOverhead, int64_t copyEngines,
                                 int64_t transferSharePpm, int64_t price) {
  auto positive = [](Rate rate) {
    return rate.perSecond > 0 && std::isfinite(rate.perSecond);
  };
  if (name.empty())
    return emitError() << "a device kind needs a name";
  if (!positive(flops))
    return emitError() << "flops of device kind '" << name
                       << "' must be positive and finite";
  if (!positive(memoryBandwidth))
    return emitError() << "memory_bandwidth of device kind '" << name
                       << "' must be positive and finite";
  if (memory < 0)
    return emitError() << "memory of device kind '" << name
                       << "' must not be negative, got " << memory << " bytes";
  if (kernelOverhead < 0)
    return emitError() << "kernel_overhead of device kind '" << name
                       << "' must not be negative, got " << kernelOverhead
                       << " ns";
  if (copyEngines < 0 || copyEngines > kMostParts)
    return emitError() << "copy_engines of device kind '" << name
                       << "' must be from 0 to " << kMostParts << ", got "
                       << copyEngines;
  if (transferSharePpm < 0 || transferSharePpm > 1000000)
    return emitError() << "transfer_share_ppm of device kind '" << name
                       << "' must be from 0 to 1000000, got "
                       << transferSharePpm;
  if (price < 0 || price > kMostPrice)
    return emitError() << "price of device kind '" << name
                       << "' must be from 0 to " << kMostPrice
                       << " millionths, got " << price;
  return success();
}

LogicalResult NodesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t count, llvm::StringRef device,
                                int64_t devices, StringAttr link, int64_t cores,
                                int64_t hostMemory, int64_t networkPorts,
                                Rate networkPortBandwidth) {
  if (count < 1)
    return emitError() << "a node group needs at least 1 node, got " << count;
  if (devices < 1)
    return emitError() << "a node needs at least 1 device, got " << devices;
  if (devices > 1 && !link)
    return emitError() << "a node of " << devices << " devices of kind '"
                       << device << "' needs a link class";
  if (cores < 0 || cores > kMostParts)
    return emitError() << "cores of a node must be from 0 to " << kMostParts
                       << ", got " << cores;
  if (hostMemory < 0)
    return emitError() << "host_memory of a node must not be negative, got "
                       << hostMemory << " bytes";
  if (networkPorts < 0 || networkPorts > kMostParts)
    return emitError() << "network_ports of a node must be from 0 to "
                       << kMostParts << ", got " << networkPorts;
  if (networkPortBandwidth.perSecond < 0 ||
      !std::isfinite(networkPortBandwidth.perSecond))
    return emitError() << "network_port_bandwidth of a node must be finite and "
                          "not negative";
  return success();
}

LogicalResult LinkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               llvm::StringRef name, int64_t latency,
                               Rate bandwidth) {
  if (name.empty())
    return emitError() << "a link class needs a name";
  if (latency < 0)
    return emitError() << "latency of link class '" << name
                       << "' must not be negative, got " << latency << " ns";
  if (!(bandwidth.perSecond >= 0) || !std::isfinite(bandwidth.perSecond))
    return emitError() << "bandwidth of link class '" << name
                       << "' must be finite and not negative";
  return success();
}

//===----------------------------------------------------------------------===//
// Action lists
//===----------------------------------------------------------------------===//

Attribute ActionsAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  // The string stands in the buffer as it is read (actions need no escapes), so
  // that an offset in it is a place in the file.
  const char *begin = parser.getCurrentLocation().getPointer() + 1;
  std::string text;
  if (parser.parseString(&text))
    return {};
  constexpr llvm::StringLiteral blanks = " \t\n";
  SmallVector<CommAction> actions;
  llvm::StringRef rest(text);
  for (size_t at = rest.find_first_not_of(blanks);
       at != llvm::StringRef::npos;) {
    size_t end = rest.find_first_of(blanks, at);
    llvm::StringRef word = rest.slice(at, end);
    std::optional<CommAction> action = parseCommAction(word.str());
    if (!action) {
      parser.emitError(SMLoc::getFromPointer(begin + at))
          << "'" << word << "' is not an action";
      return {};
    }
    actions.push_back(*action);
    at = end == llvm::StringRef::npos ? end
                                      : rest.find_first_not_of(blanks, end);
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), actions);
}

void ActionsAttr::print(AsmPrinter &printer) const {
  llvm::raw_ostream &os = printer.getStream();
  os << "<\"";
  llvm::interleave(
      getActions(), os, [&](const CommAction &action) { os << toText(action); },
      " ");
  os << "\">";
}
