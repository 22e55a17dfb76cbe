//===- PipeOps.cpp - assembly of the pipe operations ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Parts of the assembly that the declarative formats leave to code, and
// look-ups on operations.
//
//===----------------------------------------------------------------------===//
#include "Pipe/PipeDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace takt::pipe;

//===----------------------------------------------------------------------===//
// Cluster: parts in braces, one a line
//===----------------------------------------------------------------------===//

static ParseResult parseClusterParts(OpAsmParser &parser, ArrayAttr &devices,
                                     ArrayAttr &links, ArrayAttr &nodes) {
  SmallVector<Attribute> deviceList, linkList, nodeList;
  if (parser.parseLBrace())
    return failure();
  while (failed(parser.parseOptionalRBrace())) {
    SMLoc loc = parser.getCurrentLocation();
    Attribute part;
    if (parser.parseAttribute(part))
      return failure();
    if (isa<DeviceAttr>(part))
      deviceList.push_back(part);
    else if (isa<LinkAttr>(part))
      linkList.push_back(part);
    else if (isa<NodesAttr>(part))
      nodeList.push_back(part);
    else
      return parser.emitError(loc, "expected a #pipe.device, #pipe.link or "
                                   "#pipe.nodes attribute");
  }
  Builder &builder = parser.getBuilder();
  devices = builder.getArrayAttr(deviceList);
  links = builder.getArrayAttr(linkList);
  nodes = builder.getArrayAttr(nodeList);
  return success();
}

static void printClusterParts(OpAsmPrinter &printer, ClusterOp,
                              ArrayAttr devices, ArrayAttr links,
                              ArrayAttr nodes) {
  printer << "{";
  printer.increaseIndent();
  for (ArrayAttr parts : {devices, links, nodes})
    for (Attribute part : parts) {
      printer.printNewline();
      printer << part;
    }
  printer.decreaseIndent();
  printer.printNewline();
  printer << "}";
}

int64_t ClusterOp::getNumDevices() {
  int64_t devices = 0;
  for (auto group : getNodes().getAsRange<NodesAttr>())
    devices += group.getCount() * group.getDevices();
  return devices;
}

DeviceAttr ClusterOp::lookupDevice(llvm::StringRef name) {
  for (auto device : getDevices().getAsRange<DeviceAttr>())
    if (device.getName() == name)
      return device;
  return {};
}

LinkAttr ClusterOp::lookupLink(llvm::StringRef name) {
  for (auto link : getLinks().getAsRange<LinkAttr>())
    if (link.getName() == name)
      return link;
  return {};
}

std::pair<int64_t, NodesAttr> ClusterOp::getNodeOf(int32_t device) {
  int64_t node = 0, rest = device;
  for (auto group : getNodes().getAsRange<NodesAttr>()) {
    int64_t devices = group.getCount() * group.getDevices();
    if (rest < devices)
      return {node + rest / group.getDevices(), group};
    node += group.getCount();
    rest -= devices;
  }
  return {-1, NodesAttr()};
}

LinkAttr ClusterOp::getLinkAmong(llvm::ArrayRef<int32_t> devices) {
  auto [node, group] = getNodeOf(devices.front());
  for (int32_t device : devices.drop_front())
    if (getNodeOf(device).first != node)
      return lookupLink(*getNetwork());
  return group.getLink() ? lookupLink(group.getLink()) : LinkAttr();
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// `word number`; the attribute is of the given type.
static ParseResult parseEntry(OpAsmParser &parser, llvm::StringRef word,
                              Type type, IntegerAttr &attr) {
  return failure(parser.parseKeyword(word) ||
                 parser.parseAttribute(attr, type));
}

/// `[begin, end)`
static ParseResult parseRange(OpAsmParser &parser, IntegerAttr &begin,
                              IntegerAttr &end) {
  Type type = parser.getBuilder().getI32Type();
  return failure(parser.parseLSquare() || parser.parseAttribute(begin, type) ||
                 parser.parseComma() || parser.parseAttribute(end, type) ||
                 parser.parseRParen());
}

static void printRange(OpAsmPrinter &printer, Operation *, IntegerAttr begin,
                       IntegerAttr end) {
  printer << '[' << begin.getInt() << ", " << end.getInt() << ')';
}

/// Starts a further line of an operation, indented below its first.
static void printContinuation(OpAsmPrinter &printer) {
  printer.increaseIndent();
  printer.printNewline();
  printer.decreaseIndent();
}

/// `[0, 4, 5]`, or `[0, 64)` for a range.
static ParseResult parseDevices(OpAsmParser &parser,
                                DenseI32ArrayAttr &devices) {
  // A range is short to write and long to hold: bound it.
  constexpr int64_t mostDevices = int64_t(1) << 20;
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int32_t> list;
  if (parser.parseLSquare())
    return failure();
  if (failed(parser.parseOptionalRSquare())) {
    do {
      if (parser.parseInteger(list.emplace_back()))
        return failure();
    } while (succeeded(parser.parseOptionalComma()));
    if (list.size() == 2 && succeeded(parser.parseOptionalRParen())) {
      int64_t begin = list[0], end = list[1];
      if (begin >= end || end - begin > mostDevices)
        return parser.emitError(loc)
               << "a range of devices has 1 to " << mostDevices
               << " of them, got " << end - begin;
      list.resize(end - begin);
      std::iota(list.begin(), list.end(), begin);
    } else if (parser.parseRSquare()) {
      return failure();
    }
  }
  devices = parser.getBuilder().getDenseI32ArrayAttr(list);
  return success();
}

static void printDevices(OpAsmPrinter &printer, DenseI32ArrayAttr devices) {
  llvm::ArrayRef<int32_t> list = devices;
  int64_t offset = 0;
  bool isRange = list.size() > 2 && llvm::all_of(list, [&](int32_t device) {
                   return device == list.front() + offset++;
                 });
  if (isRange)
    printer << '[' << list.front() << ", " << int64_t(list.back()) + 1 << ')';
  else
    devices.print(printer);
}

static ParseResult parsePlacement(OpAsmParser &parser, IntegerAttr &replicas,
                                  DenseI32ArrayAttr &devices) {
  return failure(parseEntry(parser, "replicas",
                            parser.getBuilder().getI32Type(), replicas) ||
                 parser.parseKeyword("devices") ||
                 parseDevices(parser, devices));
}

static void printPlacement(OpAsmPrinter &printer, StageOp, IntegerAttr replicas,
                           DenseI32ArrayAttr devices) {
  printContinuation(printer);
  printer << "replicas " << replicas.getInt() << " devices ";
  printDevices(printer, devices);
}

static ParseResult parseTimes(OpAsmParser &parser, IntegerAttr &forward,
                              IntegerAttr &backward, IntegerAttr &transfer,
                              IntegerAttr &allReduce) {
  Type type = parser.getBuilder().getI64Type();
  return failure(parseEntry(parser, "forward_ns", type, forward) ||
                 parseEntry(parser, "backward_ns", type, backward) ||
                 parseEntry(parser, "transfer_ns", type, transfer) ||
                 parseEntry(parser, "all_reduce_ns", type, allReduce));
}

static void printTimes(OpAsmPrinter &printer, StageOp, IntegerAttr forward,
                       IntegerAttr backward, IntegerAttr transfer,
                       IntegerAttr allReduce) {
  printContinuation(printer);
  printer << "forward_ns " << forward.getInt() << " backward_ns "
          << backward.getInt() << " transfer_ns " << transfer.getInt()
          << " all_reduce_ns " << allReduce.getInt();
}

//===----------------------------------------------------------------------===//
// Roles: lanes one a line
//===----------------------------------------------------------------------===//

static ParseResult parseLanes(OpAsmParser &parser, ArrayAttr &lanes) {
  SmallVector<Attribute> list;
  while (succeeded(parser.parseOptionalKeyword("lane"))) {
    FailureOr<LaneKind> kind = FieldParser<LaneKind>::parse(parser);
    if (failed(kind))
      return failure();
    auto actions =
        dyn_cast_or_null<ActionsAttr>(ActionsAttr::parse(parser, Type()));
    if (!actions)
      return failure();
    list.push_back(LaneAttr::get(parser.getContext(), *kind, actions));
  }
  if (!list.empty())
    lanes = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printLanes(OpAsmPrinter &printer, RoleOp, ArrayAttr lanes) {
  if (!lanes)
    return;
  for (auto lane : lanes.getAsRange<LaneAttr>()) {
    printContinuation(printer);
    printer << "lane " << stringifyLaneKind(lane.getKind()) << ' ';
    lane.getActions().print(printer);
  }
}

LaneAttr RoleOp::getLane(LaneKind kind, int32_t stage) {
  if (ArrayAttr lanes = getLanesAttr())
    for (auto lane : lanes.getAsRange<LaneAttr>()) {
      llvm::ArrayRef<takt::CommAction> actions = lane.getActions().getActions();
      if (lane.getKind() == kind && !actions.empty() &&
          actions.front().stage == stage)
        return lane;
    }
  return {};
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

std::vector<StageOp> ProgramOp::getStages() {
  auto stages = getBody().getOps<StageOp>();
  return {stages.begin(), stages.end()};
}

std::vector<RoleOp> ProgramOp::getRoles() {
  auto roles = getBody().getOps<RoleOp>();
  return {roles.begin(), roles.end()};
}

#define GET_OP_CLASSES
#include "Pipe/PipeOps.cpp.inc"
