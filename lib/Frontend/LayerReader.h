//===- LayerReader.h - the `layers:` of a model file ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Turns the list of layers into a ModelSpec's items: names and references are
// resolved, composite layers are expanded, shapes are inferred on the way. A
// value whose shape could not be told after an error is *unknown*, and what
// depends on it is not complained about.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Reader.h"
#include "takt/Frontend/Spec.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace takt {

/// "[64, 128]"
std::string shapeText(const std::vector<int64_t> &shape);
/// Product of the dimensions, or nothing above kMaxElements.
std::optional<int64_t> countElements(const std::vector<int64_t> &shape);

class LayerReader {
public:
  LayerReader(Reader &reader, ModelSpec &spec);

  /// Makes a model input known. False if the name is taken.
  bool addInput(const rt::InputInfo &input, SourceLoc loc);
  void readLayers(const YamlNode &list);
  /// What can only be told at the end: loss last, everything used, sizes.
  void checkWhole();

private:
  /// Stands for the output of what could not be read; no one can write it.
  static constexpr const char *kUnknownValue = "?";

  struct Value {
    TensorType type;
    SourceLoc loc;
    bool known = true; ///< the type is right
    bool used = false;
    int input = -1; ///< index into spec.inputs
  };

  /// Where layers are being read: names get `prefix`, layers go to `body`.
  struct Scope {
    const Scope *outer = nullptr;
    std::string prefix;
    std::string previous; ///< value the next layer reads unless it says else
    bool trainable = true;
    std::vector<LayerSpec> *body = nullptr; ///< null: the model's items
    bool inRepeat = false;
    bool inResidual = false;
  };

  // LayerReader.cpp: structure.
  void readList(const YamlNode &list, Scope &scope);
  void readItem(const YamlNode &item, Scope &scope);
  void readRepeat(Section &section, const std::string &name, Scope &scope);
  void readResidual(Section &section, const std::string &name, bool isNamed,
                    Scope &scope);

  // LayerNames.cpp: names and references.
  void collectNames(const YamlNode &list);
  std::string takeName(Section &section, const std::string &kind,
                       const Scope &scope, bool &isNamed);
  std::string freshName(const std::string &kind, const Scope &scope);
  void registerName(const std::string &name, const std::string &kind,
                    SourceLoc loc);
  /// Full name of what `name` means in the scope; empty if nothing.
  std::string lookUp(const std::string &name, const Scope &scope) const;
  std::vector<std::string> visibleNames(const Scope &scope) const;
  std::optional<std::string>
  reference(const YamlNode &node, std::string_view key, const Scope &scope);
  /// The value of `input:` or the scope's previous one; after an error
  /// kUnknownValue.
  std::string inputOf(Section &section, const std::string &kind,
                      const Scope &scope);

  // CompositeLayers.cpp: layers that stand for several.
  struct Part; ///< what their linears have in common
  void readAttention(Section &section, LayerSpec &layer, Scope &scope);
  void readGatedMlp(Section &section, LayerSpec &layer, Scope &scope);
  /// NAME.SUFFIX, reading the scope's previous value.
  void addLinear(const Part &part, const std::string &suffix, int64_t in,
                 int64_t out, bool hasBias);
  /// A core with the name NAME.SUFFIX, reading the scope's previous value.
  void addCore(const Part &part, const std::string &suffix, LayerSpec layer);

  // LayerKinds.cpp: single layers.
  void readEmbedding(Section &section, LayerSpec &layer, const Scope &scope);
  void readPositional(Section &section, LayerSpec &layer, const Scope &scope);
  void readLinear(Section &section, LayerSpec &layer, const Scope &scope);
  void readTie(const YamlNode &node, LayerSpec &layer,
               const std::vector<int64_t> &shape, const Scope &scope);
  void readLayerNorm(Section &section, LayerSpec &layer, const Scope &scope);
  void readRmsNorm(Section &section, LayerSpec &layer, const Scope &scope);
  void readAdd(Section &section, LayerSpec &layer, const Scope &scope);
  void readLoss(Section &section, LayerSpec &layer, const Scope &scope);
  void readProfiled(Section &section, LayerSpec &layer, const Scope &scope);
  /// Reads the keys of a plain layer and finishes it.
  void readPlain(LayerKind kind, Section &section, const std::string &name,
                 Scope &scope);

  struct Init {
    rt::InitKind kind;
    double scale;
  };
  Init readInit(Section &section, Init otherwise);
  bool readTrainable(Section &section, const Scope &scope);
  void addParam(LayerSpec &layer, const std::string &suffix,
                std::vector<int64_t> shape, Init init, bool trainable);

  /// Infers the type, appends the layer and makes its output the scope's
  /// previous value. Faults are reported at `at`.
  void finish(LayerSpec layer, Scope &scope, SourceLoc at);
  const Value *knownValue(const std::vector<std::string> &inputs,
                          std::size_t index) const;
  void appendLayer(LayerSpec layer, Scope &scope);

  // LayerChecks.cpp: the model as a whole.
  void checkLast();
  void checkUses();
  void checkSizes();

  Reader &reader;
  ModelSpec &spec;
  std::map<std::string, Value> values;
  std::map<std::string, std::string> aliases; ///< composite -> its value
  std::map<std::string, SourceLoc> names;     ///< all names that are taken
  std::map<std::string, std::string> kinds;   ///< name -> layer kind
  std::map<std::string, ParamSpec> weights;   ///< layer name -> its weight
  std::set<std::string> givenNames;           ///< every `name:` of the file
  std::map<std::string, int> counters;
  std::string lossName; ///< set once a loss has been read
  bool lossReported = false;
};

/// `placement:` of a model file, whose layers must have been read.
void readPlacement(Reader &reader, const YamlNode &node, SourceLoc place,
                   ModelSpec &spec);

/// `training:` of a model file, or `inference:`.
void readTraining(Reader &reader, const YamlNode &node, SourceLoc place,
                  ModelSpec &spec);
void readInference(Reader &reader, const YamlNode &node, SourceLoc place,
                   ModelSpec &spec);

/// Nothing is trained, whatever single layers say.
void freezeAll(ModelSpec &spec);

} // namespace takt
