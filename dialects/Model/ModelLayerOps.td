//===- ModelLayerOps.td - the layers -----------------------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One op a layer kind. Operands are values, parameters are symbols, and shapes
// follow from both by `takt::inferOutput`, which the common verifier asks.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_MODEL_LAYER_OPS
#define TAKT_MODEL_LAYER_OPS

include "Model/ModelAttrs.td"
include "Model/ModelDialect.td"
include "Model/ModelInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

/// `refs`: accessors of the parameter symbols, in order; absent ones are
/// dropped. `fields`: statements that set the kind's own fields of `layer`.
class Model_LayerOp<string mnemonic, string kind, string refs = "",
                    string fields = "(void)layer;", list<Trait> traits = []>
    : Model_Op<mnemonic, !listconcat(traits, [
        ParentOneOf<["::takt::model::GraphOp", "::takt::model::RepeatOp"]>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        LayerOpInterface])> {
  let extraClassDeclaration = [{
    static ::takt::LayerKind getLayerKind() {
      return ::takt::LayerKind::}] # kind # [{;
    }
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr> getParamRefs() {
      return ::takt::model::detail::presentRefs({}] # refs # [{});
    }
    void describeInto(::takt::Layer &layer) {
      }] # fields # [{
    }
  }];
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(
        ::mlir::OpAsmSetValueNameFn setNameFn) {
      setNameFn(getOutput(), ::takt::model::detail::lastComponent(getLayer()));
    }
    ::llvm::LogicalResult $cppClass::verifySymbolUses(
        ::mlir::SymbolTableCollection &symbolTable) {
      return ::takt::model::detail::verifyShapes(*this, symbolTable);
    }
  }];
}

def Model_EmbeddingOp : Model_LayerOp<"embedding", "Embedding",
                                      "getWeightAttr()"> {
  let summary = "Rows of a table, by id";
  let description = [{
    F: `y[t] = weight[ids[t]]`. W adds `dy[t]` to row `ids[t]`. There is no I:
    ids have no gradient.

    Example:
    ```mlir
    %tok = model.embedding "tok" %tokens weight @tok.weight
        : tensor<64xi32> -> tensor<64x128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$ids,
                       FlatSymbolRefAttr:$weight,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_FloatTensor:$output);
  let assemblyFormat = [{
    $layer $ids `weight` $weight attr-dict `:` type($ids) `->` type($output)
    (custom<Costs>($cost)^)?
  }];
}

def Model_PositionalEmbeddingOp
    : Model_LayerOp<"positional_embedding", "PositionalEmbedding",
                    "getWeightAttr()", "(void)layer;",
                    [AllTypesMatch<["x", "output"]>]> {
  let summary = "Adds a learned vector to each position";
  let description = [{
    F: `y[t] = x[t] + weight[t]`; I passes the gradient on, W sums it over the
    samples.

    Example:
    ```mlir
    %pos = model.positional_embedding "pos" %tok weight @pos.weight
        : tensor<64x128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x,
                       FlatSymbolRefAttr:$weight,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Tensor:$output);
  let assemblyFormat = [{
    $layer $x `weight` $weight attr-dict `:` type($output)
    (custom<Costs>($cost)^)?
  }];
}

def Model_LinearOp : Model_LayerOp<"linear", "Linear",
                                   "getWeightAttr(), getBiasAttr()",
                                   "layer.hasBias = bool(getBiasAttr());"> {
  let summary = "Product with a weight matrix, plus a bias if there is one";
  let description = [{
    F: `y = x weight^T + bias` with weight `[out, in]`. I: `dx = dy weight`.
    W: `dweight += dy^T x`, `dbias += sum of dy`.

    Example:
    ```mlir
    %fc = model.linear "fc" %x weight @fc.weight bias @fc.bias
        : tensor<64x128xf32> -> tensor<64x512xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x,
                       FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_FloatTensor:$output);
  let assemblyFormat = [{
    $layer $x `weight` $weight (`bias` $bias^)? attr-dict `:` type($x) `->`
    type($output) (custom<Costs>($cost)^)?
  }];
}

def Model_LayerNormOp
    : Model_LayerOp<"layer_norm", "LayerNorm", "getGainAttr(), getBiasAttr()",
                    "layer.epsilon = getEpsilon().convertToDouble();",
                    [AllTypesMatch<["x", "output"]>]> {
  let summary = "Normalises the last dimension (Ba et al. 2016, "
                "arXiv 1607.06450)";
  let description = [{
    F: `y = gain (x - mean) / sqrt(variance + epsilon) + bias` over the last
    dimension. I and W need the mean and the reciprocal deviation that F saves.

    Example:
    ```mlir
    %ln = model.layer_norm "ln" %x gain @ln.weight bias @ln.bias
        epsilon 1.000000e-05 : tensor<64x128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x,
                       FlatSymbolRefAttr:$gain, FlatSymbolRefAttr:$bias,
                       F64Attr:$epsilon,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Tensor:$output);
  let assemblyFormat = [{
    $layer $x `gain` $gain `bias` $bias `epsilon` custom<Epsilon>($epsilon)
    attr-dict `:` type($output) (custom<Costs>($cost)^)?
  }];
}

def Model_RmsNormOp
    : Model_LayerOp<"rms_norm", "RmsNorm", "getGainAttr()",
                    "layer.epsilon = getEpsilon().convertToDouble();",
                    [AllTypesMatch<["x", "output"]>]> {
  let summary = "Divides the last dimension by its root mean square (Zhang and "
                "Sennrich 2019, arXiv 1910.07467)";
  let description = [{
    F: `y = gain x / sqrt(mean(x^2) + epsilon)` over the last dimension. I and W
    need the reciprocal root that F saves.

    Example:
    ```mlir
    %n = model.rms_norm "n" %x gain @n.weight epsilon 1.0e-06
        : tensor<64x128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x,
                       FlatSymbolRefAttr:$gain, F64Attr:$epsilon,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Tensor:$output);
  let assemblyFormat = [{
    $layer $x `gain` $gain `epsilon` custom<Epsilon>($epsilon)
    attr-dict `:` type($output) (custom<Costs>($cost)^)?
  }];
}

def Model_RotaryOp
    : Model_LayerOp<"rotary", "Rotary", "", [{
        layer.heads = getHeads();
        layer.headDim = getHeadDim();
        layer.theta = getTheta().convertToDouble();
      }], [AllTypesMatch<["x", "output"]>]> {
  let summary = "Turns queries and keys by their position (Su et al. 2021, "
                "arXiv 2104.09864)";
  let description = [{
    In each of the first `heads` heads of a row, elements j and j + head_dim / 2
    are turned by the angle `t theta^(-2 j / head_dim)` at position t; the rest
    of the row is copied. I turns back. No parameters, so no W.

    Example:
    ```mlir
    %r = model.rotary "rotary" %qkv heads 6 head_dim 32 theta 10000.0
        : tensor<64x256xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x, I64Attr:$heads,
                       I64Attr:$head_dim, F64Attr:$theta,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Tensor:$output);
  let assemblyFormat = [{
    $layer $x `heads` $heads `head_dim` $head_dim `theta`
    custom<Epsilon>($theta) attr-dict `:` type($output)
    (custom<Costs>($cost)^)?
  }];
}

def Model_AttentionOp
    : Model_LayerOp<"attention", "Attention", "", [{
        layer.heads = getHeads();
        layer.kvHeads = getKvHeads().value_or(0);
      }]> {
  let summary = "Causal multi-head attention core (Vaswani et al. 2017, "
                "arXiv 1706.03762)";
  let description = [{
    Takes rows of queries, keys and values side by side, `[positions, 3 width]`;
    the projections before and after are `model.linear` ops. F computes
    `softmax(q k^T / sqrt(width / heads)) v` per head, where position t sees
    positions up to t. I recomputes the scores from the log-sum-exp that F
    saves. With `kv_heads` there are fewer heads of keys and values than of
    queries, each shared by neighbouring heads (Ainslie et al. 2023, arXiv
    2305.13245).

    Example:
    ```mlir
    %a = model.attention "attn" %qkv heads 4
        : tensor<64x384xf32> -> tensor<64x128xf32>
    %b = model.attention "grouped" %x heads 4 kv_heads 2
        : tensor<64x256xf32> -> tensor<64x128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$qkv, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$kv_heads,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_FloatTensor:$output);
  let assemblyFormat = [{
    $layer $qkv `heads` $heads (`kv_heads` $kv_heads^)? attr-dict `:` type($qkv) `->` type($output)
    (custom<Costs>($cost)^)?
  }];
}

class Model_ElementwiseOp<string mnemonic, string kind>
    : Model_LayerOp<mnemonic, kind, "", "(void)layer;",
                    [AllTypesMatch<["x", "output"]>]> {
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Tensor:$output);
  let assemblyFormat =
    "$layer $x attr-dict `:` type($output) (custom<Costs>($cost)^)?";
}

def Model_GeluOp : Model_ElementwiseOp<"gelu", "Gelu"> {
  let summary = "Gaussian error linear unit, exact form (Hendrycks and Gimpel "
                "2016, arXiv 1606.08415)";
  let description = [{
    F: `y = x Phi(x)`; I needs x. No parameters, so no W.

    Example: `%act = model.gelu "act" %x : tensor<64x512xf32>`
  }];
}

def Model_GeluTanhOp : Model_ElementwiseOp<"gelu_tanh", "GeluTanh"> {
  let summary = "Gaussian error linear unit, tanh form (Hendrycks and Gimpel "
                "2016, arXiv 1606.08415)";
  let description = [{
    F: `y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`; I needs x. No
    parameters, so no W.

    Example: `%act = model.gelu_tanh "act" %x : tensor<64x512xf32>`
  }];
}

def Model_GluOp
    : Model_LayerOp<"glu", "Glu", "",
                    "layer.gate = ::takt::GateKind(getGate());"> {
  let summary = "Gated linear unit (Shazeer 2020, arXiv 2002.05202)";
  let description = [{
    F: the first half of the last dimension, passed through `silu`, `gelu` or
    `gelu_tanh`, times the second half; I needs both. No parameters, so no W.

    Example:
    ```mlir
    %g = model.glu "gate" %x silu : tensor<64x1024xf32> -> tensor<64x512xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x, Model_GateAttr:$gate,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_FloatTensor:$output);
  let assemblyFormat = [{
    $layer $x $gate attr-dict `:` type($x) `->` type($output)
    (custom<Costs>($cost)^)?
  }];
}

def Model_ReluOp : Model_ElementwiseOp<"relu", "Relu"> {
  let summary = "The larger of the element and zero";
  let description = [{
    I passes the gradient where the output is positive. No parameters, so no W.

    Example: `%act = model.relu "act" %x : tensor<64x512xf32>`
  }];
}

def Model_AddOp : Model_LayerOp<"add", "Add", "", "(void)layer;",
                                [AllTypesMatch<["lhs", "rhs", "output"]>]> {
  let summary = "Sum of two values, as at the end of a residual block";
  let description = [{
    I passes the gradient to both inputs. No parameters, so no W.

    Example: `%sum = model.add "res" %x, %proj : tensor<64x128xf32>`
  }];
  let arguments = (ins StrAttr:$layer, Model_Tensor:$lhs, Model_Tensor:$rhs,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Tensor:$output);
  let assemblyFormat =
    "$layer $lhs `,` $rhs attr-dict `:` type($output) (custom<Costs>($cost)^)?";
}

class Model_LossOp<string mnemonic, string kind>
    : Model_LayerOp<mnemonic, kind> {
  let arguments = (ins StrAttr:$layer, Model_Tensor:$x, Model_Tensor:$targets,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_Loss:$output);
  let assemblyFormat = [{
    $layer $x `,` $targets attr-dict `:` type($x) `,` type($targets)
    (custom<Costs>($cost)^)?
  }];
}

def Model_CrossEntropyOp : Model_LossOp<"cross_entropy", "CrossEntropy"> {
  let summary = "Mean negative log-likelihood of the target classes";
  let description = [{
    Logits `[.., classes]` and int32 targets `[..]`; the loss is the mean over
    all rows of the global batch, in nats.

    Example:
    ```mlir
    %loss = model.cross_entropy "loss" %logits, %targets
        : tensor<64x256xf32>, tensor<64xi32>
    ```
  }];
}

def Model_MeanSquaredErrorOp
    : Model_LossOp<"mean_squared_error", "MeanSquaredError"> {
  let summary = "Mean squared difference to a target of the same shape";
  let description = [{
    Example:
    ```mlir
    %loss = model.mean_squared_error "loss" %y, %target
        : tensor<4xf32>, tensor<4xf32>
    ```
  }];
}

def Model_ProfiledOp : Model_LayerOp<"profiled", "Profiled"> {
  let summary = "A layer known by its costs only";
  let description = [{
    Comes from published or measured profiles and can be planned, not executed.
    Its output is one dimension of as many floats as `activation` holds for a
    sample (at least one). A `frozen` one has no weight gradient and no update,
    and no backward at all where nothing before it is trained.

    Example:
    ```mlir
    %conv1 = model.profiled "conv1" %x profile <forward = 12, activation = 400>
        : (tensor<8xf32>) -> tensor<100xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer, Optional<Model_Tensor>:$input,
                       Model_ProfileAttr:$profile, UnitAttr:$frozen,
                       OptionalAttr<Model_CostArray>:$cost);
  let results = (outs Model_FloatTensor:$output);
  let assemblyFormat = [{
    $layer ($input^)? `profile` $profile attr-dict `:`
    functional-type($input, $output) (custom<Costs>($cost)^)?
  }];
  let extraClassDeclaration = [{
    static ::takt::LayerKind getLayerKind() {
      return ::takt::LayerKind::Profiled;
    }
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr> getParamRefs() { return {}; }
    void describeInto(::takt::Layer &layer);
  }];
}

#endif // TAKT_MODEL_LAYER_OPS
