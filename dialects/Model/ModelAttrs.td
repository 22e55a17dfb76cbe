//===- ModelAttrs.td - attributes of the model dialect -----*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Inputs, initialisers, training settings and costs. Doubles print in the
// shortest form that reads back as the same value.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_MODEL_ATTRS
#define TAKT_MODEL_ATTRS

include "Model/ModelDialect.td"
include "Model/ModelEnums.td"
include "mlir/IR/AttrTypeBase.td"

class Model_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Model_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// A double that may be left out where it equals `value`.
class Model_Double<string value, string desc>
    : DefaultValuedParameter<"::takt::model::Real",
                             "::takt::model::Real(" # value # ")", desc>;

class Model_Count<string value, string desc>
    : DefaultValuedParameter<"int64_t", value, desc>;

def Model_InputAttr : Model_Attr<"Input", "input"> {
  let summary = "A model input that the data loader fills";
  let description = [{
    Name, and for int32 inputs the number of classes: values lie between 0 and
    `classes - 1`; 0 or left out where it is not known. The shape is that of the
    graph's argument.

    Example: `#model.input<"tokens", classes = 256>`
  }];
  let parameters = (ins
    StringRefParameter<"name as the data loader knows it">:$label,
    Model_Count<"0", "upper bound of int32 values; 0: unknown">:$classes);
  let assemblyFormat = "`<` $label (`,` `classes` `=` $classes^)? `>`";
  let genVerifyDecl = 1;
}

def Model_InitAttr : Model_Attr<"Init", "init"> {
  let summary = "First values of a parameter";
  let description = [{
    Scale is the standard deviation of `normal` and the half width of `uniform`.

    Example: `#model.init<normal, 0.02>`
  }];
  let parameters = (ins
    EnumParameter<Model_InitKind>:$kind,
    Model_Double<"0.0", "standard deviation or half width">:$scale);
  let assemblyFormat = "`<` $kind (`,` $scale^)? `>`";
  let genVerifyDecl = 1;
}

def Model_TrainingAttr : Model_Attr<"Training", "training"> {
  let summary = "Batch, optimizer and learning rate";
  let description = [{
    All that a step of training needs beside the layers. Fields that equal the
    defaults shown are not printed. In the mode `inference` a step goes forward
    alone: every parameter is `frozen`, the last layer need not be a loss, and
    the optimizer's settings mean nothing.

    Example:
    `#model.training<global_batch = 32, micro_batches = 8, optimizer = adamw,
    learning_rate = 0.003>`
  }];
  let parameters = (ins
    Model_Count<"1", "samples a step">:$global_batch,
    DefaultValuedParameter<"int32_t", "1",
      "parts of the global batch, all of one size">:$micro_batches,
    DefaultValuedParameter<"uint64_t", "0", "of all random choices">:$seed,
    DefaultValuedParameter<"::takt::model::Optimizer",
      "::takt::model::Optimizer::Sgd", "update rule">:$optimizer,
    Model_Double<"0.001", "peak learning rate">:$learning_rate,
    Model_Double<"0.9", "decay of the velocity (momentum)">:$momentum,
    Model_Double<"0.9", "decay of the first moment (adamw)">:$beta1,
    Model_Double<"0.999", "decay of the second moment (adamw)">:$beta2,
    Model_Double<"1e-8", "added to the root of the second moment">:$epsilon,
    Model_Double<"0.0", "weight decay; decoupled for adamw">:$weight_decay,
    DefaultValuedParameter<"::takt::model::LrSchedule",
      "::takt::model::LrSchedule::Constant", "decay of the rate">:$schedule,
    Model_Count<"0", "steps of linear warm-up">:$warmup_steps,
    Model_Count<"0", "step at which the decay ends">:$total_steps,
    Model_Double<"0.0", "rate at the end of the decay">:$min_learning_rate,
    DefaultValuedParameter<"::takt::model::Mode",
      "::takt::model::Mode::Training", "what a step is for">:$mode);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Model_DataAttr : EnumAttr<Model_Dialect, Model_DataSource, "data">;
def Model_GateAttr : EnumAttr<Model_Dialect, Model_Gate, "gate">;

def Model_ProfileAttr : Model_Attr<"Profile", "profile"> {
  let summary = "What a profiled layer states about itself";
  let description = [{
    Nanoseconds of each phase and bytes of the output for one micro-batch of
    `samples` samples, and bytes of the layer's parameters.

    Example:
    `#model.profile<samples = 4, forward = 120, input_grad = 110,
    weight_grad = 100, activation = 4096, parameters = 65536>`
  }];
  let parameters = (ins
    Model_Count<"1", "samples that the figures are for">:$samples,
    Model_Count<"0", "ns">:$forward,
    Model_Count<"0", "ns">:$input_grad,
    Model_Count<"0", "ns">:$weight_grad,
    Model_Count<"0", "bytes of the output, which the next layer saves">:
      $activation,
    Model_Count<"0", "bytes">:$parameters);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Model_CostAttr : Model_Attr<"Cost", "cost"> {
  let summary = "Times of one layer's phases, in nanoseconds";
  let description = [{
    One entry per replica option of the graph: entry k is the time of one
    micro-batch's share when the layer's stage runs on `replica_options[k]`
    replicas. The update does not depend on the samples. With several kinds of
    device a layer has costs for each, which name it.

    Example:
    `#model.cost<forward = [8, 4], input_grad = [8, 4], weight_grad = [8, 4],
    update = 2>`
  }];
  let parameters = (ins
    "::mlir::DenseI64ArrayAttr":$forward,
    "::mlir::DenseI64ArrayAttr":$input_grad,
    "::mlir::DenseI64ArrayAttr":$weight_grad,
    Model_Count<"0", "ns of the optimizer step">:$update,
    OptionalParameter<"::mlir::StringAttr", "kind; none: all">:$device);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

/// The costs of a layer op. Inside a repeat one entry stands for all
/// repetitions, or there is one entry a repetition (measured costs differ); with
/// several kinds of device, those of one kind after those of another.
def Model_CostArray
    : TypedArrayAttrBase<Model_CostAttr,
                         "one cost, or one a repetition of the block, for each kind of device">;

#endif // TAKT_MODEL_ATTRS
