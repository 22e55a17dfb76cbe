//===- ModelInterfaces.td - what every layer op offers -----*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The interface through which everything else sees a layer: exporter, cost pass
// and verifier know no layer op by name.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_MODEL_INTERFACES
#define TAKT_MODEL_INTERFACES

include "mlir/IR/OpBase.td"

def LayerOpInterface : OpInterface<"LayerOpInterface"> {
  let cppNamespace = "::takt::model";
  let description = [{
    A layer: some inputs, one output, some parameters. F computes the output, I
    the gradients of the inputs, W the gradients of the parameters; `describe`
    gives the plain struct from which work, saved tensors and kernels of each
    follow.
  }];
  let methods = [
    StaticInterfaceMethod<"The kind, which decides the kernels of F, I and W.",
      "::takt::LayerKind", "getLayerKind">,
    InterfaceMethod<[{
        Name of the layer; inside a repeat it holds one `*` in place of the
        index of the repetition.
      }], "::llvm::StringRef", "getLayerName", (ins), "",
      "return $_op.getLayer();">,
    InterfaceMethod<"Symbols of the parameters, in the kind's order.",
      "::llvm::SmallVector<::mlir::FlatSymbolRefAttr>", "getParamRefs">,
    InterfaceMethod<"Sets the fields that only this kind has.",
      "void", "describeInto", (ins "::takt::Layer &":$layer)>,
    InterfaceMethod<[{
        The layer as a plain struct, without value ids and parameter indices,
        which only a whole graph gives.
      }], "::takt::Layer", "describe", (ins), "", [{
        ::takt::Layer result;
        result.kind = $_op.getLayerKind();
        result.name = $_op.getLayer().str();
        $_op.describeInto(result);
        return result;
      }]>,
    InterfaceMethod<[{
        Costs: none, one entry, or one a repetition of the enclosing repeat.
      }], "::mlir::ArrayAttr", "getCosts", (ins), "",
      "return $_op.getCostAttr();">,
    InterfaceMethod<"Replaces the costs.",
      "void", "setCosts", (ins "::mlir::ArrayAttr":$costs), "",
      "$_op.setCostAttr(costs);">,
  ];
  let verify = "return ::takt::model::detail::verifyLayer($_op);";
}

#endif // TAKT_MODEL_INTERFACES
