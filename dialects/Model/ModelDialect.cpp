//===- ModelDialect.cpp - registration, attributes ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect and holds the generated code and the verifiers of its
// attributes.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelDialect.h"
#include "takt/Frontend/Read.h" // limits

#include "llvm/ADT/TypeSwitch.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace takt;
using namespace takt::model;

#include "Model/ModelDialect.cpp.inc"
#include "Model/ModelEnums.cpp.inc"
#include "Model/ModelInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Model/ModelAttrs.cpp.inc"

void ModelDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Model/ModelAttrs.cpp.inc"
      >();
}

void ModelDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "Model/ModelOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Reals
//===----------------------------------------------------------------------===//

static uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

bool Real::operator==(const Real &other) const {
  return bitsOf(value) == bitsOf(other.value);
}

llvm::hash_code model::hash_value(const Real &real) {
  return llvm::hash_value(bitsOf(real.value));
}

raw_ostream &model::operator<<(raw_ostream &os, const Real &real) {
  // MLIR's literals want a point before the exponent: 1e-08 becomes 1.0e-08.
  std::string text = fmt::format("{}", real.value);
  if (text.find('.') == std::string::npos) {
    size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return os << text;
}

FailureOr<Real> FieldParser<Real>::parse(AsmParser &parser) {
  double value = 0;
  if (parser.parseFloat(value))
    return failure();
  return Real(value);
}

//===----------------------------------------------------------------------===//
// Verifiers of attributes
//===----------------------------------------------------------------------===//

using EmitError = function_ref<InFlightDiagnostic()>;

LogicalResult InputAttr::verify(EmitError emitError, StringRef label,
                                int64_t classes) {
  if (label.empty())
    return emitError() << "an input needs a name";
  if (classes < 0 || classes > INT32_MAX)
    return emitError() << "input '" << label << "' has " << classes
                       << " classes, allowed are 0 to " << INT32_MAX;
  return success();
}

LogicalResult InitAttr::verify(EmitError emitError, InitKind, Real scale) {
  if (!std::isfinite(scale.value) || scale.value < 0)
    return emitError() << "the scale of an initialiser must be finite and not "
                          "negative";
  return success();
}

LogicalResult TrainingAttr::verify(EmitError emitError, int64_t globalBatch,
                                   int32_t microBatches, uint64_t, Optimizer,
                                   Real learningRate, Real momentum, Real beta1,
                                   Real beta2, Real epsilon, Real weightDecay,
                                   LrSchedule, int64_t warmupSteps,
                                   int64_t totalSteps, Real minLearningRate,
                                   Mode) {
  if (globalBatch < 1 || microBatches < 1)
    return emitError()
           << "the global batch and the number of micro-batches must "
              "be at least 1";
  if (globalBatch % microBatches != 0)
    return emitError() << "the global batch of " << globalBatch
                       << " samples is not a multiple of " << microBatches
                       << " micro-batches";
  if (microBatches > kMaxMicroBatches)
    return emitError() << microBatches << " micro-batches, allowed are "
                       << kMaxMicroBatches;
  if (warmupSteps < 0 || totalSteps < 0)
    return emitError() << "numbers of steps must not be negative";
  for (Real real : {learningRate, momentum, beta1, beta2, epsilon, weightDecay,
                    minLearningRate})
    if (!std::isfinite(real.value))
      return emitError() << "training settings must be finite numbers";
  return success();
}

LogicalResult ProfileAttr::verify(EmitError emitError, int64_t samples,
                                  int64_t forward, int64_t inputGrad,
                                  int64_t weightGrad, int64_t activation,
                                  int64_t parameters) {
  if (samples < 1)
    return emitError() << "a profile needs at least 1 sample, got " << samples;
  for (int64_t figure :
       {forward, inputGrad, weightGrad, activation, parameters})
    if (figure < 0)
      return emitError() << "times and bytes of a profile must not be negative";
  return success();
}

LogicalResult CostAttr::verify(EmitError emitError, DenseI64ArrayAttr forward,
                               DenseI64ArrayAttr inputGrad,
                               DenseI64ArrayAttr weightGrad, int64_t update,
                               StringAttr device) {
  if (inputGrad.size() != forward.size() || weightGrad.size() != forward.size())
    return emitError() << "the phases of a cost differ in their number of "
                          "entries";
  bool negative = update < 0;
  for (DenseI64ArrayAttr phase : {forward, inputGrad, weightGrad})
    negative = negative || llvm::any_of(phase.asArrayRef(),
                                        [](int64_t ns) { return ns < 0; });
  if (negative)
    return emitError() << "times of a cost must not be negative";
  if (device && device.empty())
    return emitError() << "a cost names no kind of device";
  return success();
}
