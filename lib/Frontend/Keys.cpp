//===- Keys.cpp - the keys of the YAML files ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tables only. Whoever adds a key adds it here, in schemas/ and in
// docs/reference/yaml.md.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Keys.h"

#include <cassert>

using namespace takt;

const std::vector<KeyTable> &takt::modelKeys() {
  static const std::vector<KeyTable> tables = {
      {"file",
       {"schema_version", "model", "mode", "training", "inference", "data",
        "placement"}},
      {"model", {"name", "inputs", "layers"}},
      {"input", {"shape", "dtype", "classes"}},
      {"layer",
       {"embedding", "positional_embedding", "linear", "layer_norm", "rms_norm",
        "attention", "gated_mlp", "gelu", "gelu_tanh", "relu", "add",
        "cross_entropy", "mean_squared_error", "profiled", "residual",
        "repeat"}},
      {"embedding", {"name", "input", "vocab", "width", "init", "trainable"}},
      {"positional_embedding", {"name", "input", "init", "trainable"}},
      {"linear", {"name", "input", "out", "bias", "tied", "init", "trainable"}},
      {"layer_norm", {"name", "input", "epsilon", "init", "trainable"}},
      {"rms_norm", {"name", "input", "epsilon", "init", "trainable"}},
      {"attention",
       {"name", "input", "heads", "kv_heads", "head_dim", "bias", "proj_bias",
        "rope_theta", "init", "trainable"}},
      {"gated_mlp",
       {"name", "input", "width", "activation", "bias", "init", "trainable"}},
      {"gelu", {"name", "input"}},
      {"gelu_tanh", {"name", "input"}},
      {"relu", {"name", "input"}},
      {"add", {"name", "inputs"}},
      {"cross_entropy", {"name", "input", "target"}},
      {"mean_squared_error", {"name", "input", "target"}},
      {"profiled",
       {"name", "input", "forward", "backward", "input_grad", "weight_grad",
        "activation", "parameters", "samples", "trainable"}},
      {"residual", {"name", "input", "layers", "trainable"}},
      {"repeat", {"name", "input", "count", "layers", "trainable"}},
      {"training",
       {"global_batch", "micro_batches", "seed", "optimizer",
        "learning_rate_schedule"}},
      {"inference", {"global_batch", "micro_batches", "seed"}},
      {"optimizer",
       {"kind", "learning_rate", "momentum", "betas", "epsilon",
        "weight_decay"}},
      {"learning_rate_schedule",
       {"kind", "warmup_steps", "total_steps", "minimum"}},
      {"data", {"kind"}},
      {"placement", {"constraints"}},
      {"constraint",
       {"keep_together", "keep_apart", "no_cut_after", "no_cut_before", "pin",
        "stages", "max_stages", "memory_headroom"}},
      {"pin", {"layer", "stage"}},
  };
  return tables;
}

const std::vector<KeyTable> &takt::modelWords() {
  static const std::vector<KeyTable> tables = {
      {"mode", {"training", "inference"}},
      {"dtype", {"float32", "int32"}},
      {"optimizer_kind", {"sgd", "momentum", "adamw"}},
      {"schedule_kind", {"constant", "linear", "cosine"}},
      {"data_kind", {"text", "synthetic"}},
      {"activation", {"silu", "gelu", "gelu_tanh"}},
  };
  return tables;
}

const std::vector<KeyTable> &takt::clusterKeys() {
  static const std::vector<KeyTable> tables = {
      {"file", {"schema_version", "cluster"}},
      {"cluster", {"name", "devices", "nodes", "links", "network"}},
      {"device",
       {"flops", "memory_bandwidth", "memory", "kernel_overhead",
        "copy_engines", "transfer_share", "price_per_hour"}},
      {"node",
       {"count", "device", "devices", "cores", "host_memory", "link",
        "network_ports", "network_port_bandwidth"}},
      {"link", {"latency", "bandwidth"}},
  };
  return tables;
}

const std::vector<KeyTable> &takt::profileKeys() {
  static const std::vector<KeyTable> tables = {
      {"file", {"schema_version", "profile"}},
      {"profile", {"device", "samples", "layers"}},
      {"layer", {"forward", "input_grad", "weight_grad", "update"}},
  };
  return tables;
}

const KeyTable &takt::keyTable(const std::vector<KeyTable> &tables,
                               std::string_view name) {
  for (const KeyTable &table : tables)
    if (table.name == name)
      return table;
  assert(false && "no such key table");
  return tables.front();
}
