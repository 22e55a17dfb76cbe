//===- ModelDialect.td - the model dialect -----------------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Says what is trained: a graph of typed layers, its parameters and its
// training settings.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_MODEL_DIALECT
#define TAKT_MODEL_DIALECT

include "mlir/IR/OpBase.td"

def Model_Dialect : Dialect {
  let name = "model";
  let summary = "What is trained: layers, parameters, training settings";
  let description = [{
    A `model.graph` holds the layers of one model in execution order, the
    parameters they use as symbols, and the training settings. Equal blocks in a
    row are one `model.repeat`.

    Shapes are those of one sample: the batch belongs to the schedule. Every
    layer op stands for its forward (F), input-gradient (I) and weight-gradient
    (W) work at once, which `LayerOpInterface` describes; the `pipe` dialect
    orders that work and does not copy the layers.

    The dialect holds no rule about shapes of its own. Its verifiers ask the
    layer library (`takt/Layer/Graph.h`), as the YAML reader does.
  }];
  let cppNamespace = "::takt::model";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

class Model_Op<string mnemonic, list<Trait> traits = []>
    : Op<Model_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Types: builtin tensors without the batch dimension
//===----------------------------------------------------------------------===//

def Model_Tensor : StaticShapeTensorOf<[F32, I32]>;
def Model_FloatTensor : StaticShapeTensorOf<[F32]>;
def Model_IntTensor : StaticShapeTensorOf<[I32]>;

/// The loss of one sample; built where an op has one, so it is not printed.
def Model_Loss
    : Type<And<[Model_FloatTensor.predicate,
                HasAnyRankOfPred<[0]>]>,
           "a float32 scalar", "::mlir::RankedTensorType">,
      BuildableType<"::mlir::RankedTensorType::get("
                    "{}, $_builder.getF32Type())">;

#endif // TAKT_MODEL_DIALECT
