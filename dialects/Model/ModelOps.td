//===- ModelOps.td - graph, parameters, repeats ------------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The ops that hold a model together; ModelLayerOps.td has the layers.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_MODEL_OPS
#define TAKT_MODEL_OPS

include "Model/ModelAttrs.td"
include "Model/ModelDialect.td"
include "Model/ModelLayerOps.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Model_GraphOp : Model_Op<"graph", [
    IsolatedFromAbove, SingleBlock, Symbol, SymbolTable,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>
  ]> {
  let summary = "A model: inputs, parameters, layers, training settings";
  let description = [{
    The block's arguments are the model inputs. It holds the parameters as
    symbols and the layers in execution order, and ends in `model.output`. Costs
    are those of its layers; what they share stands here: `replica_options`,
    ascending divisors of the micro-batch size, and `cost_source`, which says
    whether they are a roofline or were measured.

    Example:
    ```mlir
    model.graph @classifier(%x: tensor<8xf32> <"x">,
                            %y: tensor<i32> <"y", classes = 4>)
        training <global_batch = 16, micro_batches = 4> data synthetic {
      model.param @head.weight : tensor<4x8xf32> init <normal, 0.02>
      %head = model.linear "head" %x weight @head.weight
          : tensor<8xf32> -> tensor<4xf32>
      %loss = model.cross_entropy "loss" %head, %y : tensor<4xf32>, tensor<i32>
      model.output %loss : tensor<f32>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypedArrayAttrBase<Model_InputAttr, "model inputs">:$inputs,
    Model_TrainingAttr:$training,
    Model_DataAttr:$data,
    OptionalAttr<DenseI64ArrayAttr>:$replica_options,
    OptionalAttr<StrAttr>:$cost_source);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Number of layers with every repeat unrolled.
    int64_t numLayers();
  }];
}

def Model_ParamOp : Model_Op<"param", [
    HasParent<"::takt::model::GraphOp">, Symbol
  ]> {
  let summary = "A parameter, by its global name";
  let description = [{
    Declares a parameter that layers use by symbol; two uses of one symbol are a
    tie. `frozen` parameters have no gradient. A name with a `*` stands for
    `repeated` parameters, one a repetition of the block whose layers use it.

    Example:
    ```mlir
    model.param @"h.*.ln1.weight" : tensor<128xf32> init <ones> repeated 4
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<Model_FloatTensor>:$type,
    Model_InitAttr:$init,
    UnitAttr:$frozen,
    OptionalAttr<I64Attr>:$repeated);
  let assemblyFormat = [{
    $sym_name `:` $type `init` $init (`frozen` $frozen^)?
    (`repeated` $repeated^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Model_RepeatOp : Model_Op<"repeat", [
    HasParent<"::takt::model::GraphOp">, SingleBlock,
    AllTypesMatch<["input", "output"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface,
                              ["getAsmResultNames", "getAsmBlockArgumentNames"]>
  ]> {
  let summary = "Equal blocks of layers in a row, kept as one";
  let description = [{
    The argument is the output of the previous repetition, at first `input`; the
    result is the output of the last. The names of the body's layers and
    parameters hold a `*` in place of the index, which counts from 0. A
    parameter without `*` is shared by all repetitions. Repeats do not nest.

    Example:
    ```mlir
    %h = model.repeat 4 "h" (%x = %tok) : tensor<64x128xf32> {
      %act = model.gelu "h.*.act" %x : tensor<64x128xf32>
      model.yield %act : tensor<64x128xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, StrAttr:$block, Model_Tensor:$input);
  let results = (outs Model_Tensor:$output);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Model_YieldOp : Model_Op<"yield", [
    Terminator, HasParent<"::takt::model::RepeatOp">
  ]> {
  let summary = "What a repetition hands to the next";
  let arguments = (ins Model_Tensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Model_OutputOp : Model_Op<"output", [
    Terminator, HasParent<"::takt::model::GraphOp">
  ]> {
  let summary = "The result of the model: the loss of one sample";
  let description = [{
    Names the last layer's output: a loss, or the output of a profiled layer; in
    the mode `inference` the output of any layer.
  }];
  let arguments = (ins Model_Tensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // TAKT_MODEL_OPS
