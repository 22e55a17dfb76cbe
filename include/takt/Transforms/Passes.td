//===- Passes.td - the passes of the compiler --------------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Declares the passes in the order in which they run. Each is glue: it reads IR
// into a plain problem, calls a library and writes the answer back. Each
// description says what the pass needs, what it changes, what holds afterwards
// and what it may report.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_TRANSFORMS_PASSES
#define TAKT_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def AnnotateCostsPass : Pass<"takt-annotate-costs", "::mlir::ModuleOp"> {
  let summary = "State the time of every layer's forward, input-gradient, "
                "weight-gradient and update work";
  let description = [{
    Needs one `model.graph` and one `pipe.cluster` in the module; costs that are
    already there are replaced.

    Gives every layer op a `#model.cost`: integer nanoseconds for its F, I and W
    at each replica option, and for its update. Replica options are the divisors
    of the micro-batch size up to the number of devices; they and the source of
    the costs are stored on the graph. By default the costs are a roofline,
    `max(flops / rate, bytes / bandwidth) + kernels * overhead` (Williams et al.
    2009); with `profile` they are the measured times of that file, scaled to
    each replica's share of the samples. Profiled layers state their own.

    Afterwards every layer has a cost with as many entries per phase as the
    graph has replica options. Nothing else changes.

    Reports: no graph or cluster, or more than one; devices of different kinds;
    a profile that cannot be read, or lacks a layer of the model (each missing
    layer is named).
  }];
  let options = [
    Option<"profile", "profile", "std::string", /*default=*/"",
           "YAML file of measured costs; empty: roofline">
  ];
  let dependentDialects = ["::takt::model::ModelDialect"];
  let statistics = [
    Statistic<"numLayers", "layers", "Layers that received a cost">
  ];
}

def AssignStagesPass : Pass<"takt-assign-stages", "::mlir::ModuleOp"> {
  let summary = "Cut the layers into stages and give each its devices";
  let description = [{
    Needs one `model.graph` with costs (`takt-annotate-costs`) and one
    `pipe.cluster`; no `pipe.program` yet.

    Solves stage assignment on the chain of segments exactly, with stage
    replicas and per-stage memory (objective and method: `takt/Partition`), or
    chooses replicas for the cuts that the options give. With `ranks` several
    stages share the devices of a rank; the answer then is a search's, with a
    proven bound. Writes the answer as
    one `pipe.program`: stages with layers, replicas, devices, predicted times
    and memory, with the objective and its proven lower bound.

    Where one value crosses each cut, the model is a chain. A model that has too few
    such cuts (a skip connection that spans many layers, towers) is cut as a graph:
    graph assignment (`takt/Partition/GraphProblem.h`) gives an order of the layers
    and the bound, and that order and the model's are cut between any two layers.
    Every value that is read behind a cut crosses it. The program then has the order
    as its attribute `takt.order`: stages and segments count layers in it.

    On nodes of several kinds, sizes or links every stage gets devices of one kind
    in equal nodes (`takt/Partition/Mixed.h`), with the costs of that kind. The
    same search has prices as its objective and limits on time and price; a model
    that is no chain is cut in the order of graph assignment and in its own.

    With `cost-model` a published planner chooses in its own terms (`takt/Partition/
    Costs`); its answer must fit and is valued and bounded as any other, and the
    program gets the attribute `takt.cost_model` with the step that the formula
    expects. Such planners know no constraints, cuts or numbers of stages; those of
    dnn-partitioning and Piper cut graphs, the others chains.

    In the mode `inference` the objective is the period of a continuous flow, the
    longest stage or transfer.

    Every `pipe.constraint` of the module is kept. Where that cannot be, the
    constraint solver's proof is reduced to a minimal set of them that clash.

    Afterwards the stages cover the layers once and in order, and no device is
    used twice but by the stages of its rank. The graph and the cluster stay as they are.

    Reports: missing costs; options that contradict each other; kinds without a price;
    a constraint on a layer that is not there; no assignment that fits, with what
    clashes and the cheapest ways out as notes, for constraints at their places. In
    the last case the module gets the attribute `takt.infeasible`, or
    `takt.limit_reached` when the work limit ended the search without an answer;
    each holds the reason.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", /*default=*/"0",
           "Exact number of stages; 0: free">,
    Option<"maxStages", "max-stages", "int64_t", /*default=*/"0",
           "Most stages allowed; 0: no limit">,
    ListOption<"cuts", "cuts", "int64_t",
               "Segments before which a stage ends (comma-separated); only "
               "replicas are then chosen">,
    Option<"replicas", "replicas", "int64_t", /*default=*/"0",
           "Replicas of every stage; 0: free">,
    Option<"schedulePolicy", "schedule-policy", "std::string",
           /*default=*/"\"1f1b\"",
           "Micro-batches in flight that memory must hold: 1f1b or gpipe; in "
           "the mode inference forward">,
    ListOption<"ranks", "ranks", "int64_t",
               "Rank of every stage, counted by their first stages, where ranks "
               "hold several (comma-separated)">,
    ListOption<"held", "held", "int64_t",
               "Micro-batches that every stage holds; needed with ranks">,
    Option<"assignBy", "assign", "std::string", /*default=*/"\"auto\"",
           "Where to cut: chain (one value crosses a cut), graph (any number; "
           "cuts then count layers), or auto">,
    Option<"costModel", "cost-model", "std::string", /*default=*/"\"takt\"",
           "Whose formula chooses the stages: takt, pipedream, dapple, 2bw, "
           "dnn-partitioning or piper">,
    Option<"objective", "objective", "std::string", /*default=*/"\"time\"",
           "What is to be least of a step: time or price">,
    Option<"maxTime", "max-time", "int64_t", /*default=*/"0",
           "Nanoseconds that a step may take; 0: no limit">,
    Option<"maxPrice", "max-price", "double", /*default=*/"-1",
           "Price that a step may have, in the currency; negative: no limit">,
    Option<"workLimit", "work-limit", "int64_t",
           /*default=*/"int64_t(4) << 30",
           "Transitions looked at before the best answer so far is taken">,
    Option<"searchWork", "search-work", "int64_t", /*default=*/"20000000",
           "Work of the constraint solver on a bound or a clash">,
    Option<"dumpSmt2", "dump-smt2", "std::string", /*default=*/"",
           "Folder that receives what the constraint solver is asked">
  ];
  let dependentDialects = ["::takt::pipe::PipeDialect"];
}

def SchedulePass : Pass<"takt-schedule", "::mlir::ModuleOp"> {
  let summary = "Order the forward and backward actions of every stage";
  let description = [{
    Needs one `pipe.program` with stages (`takt-assign-stages`) and no roles.

    Generates the named schedule for the number of stages and micro-batches, the
    times of the stages and the micro-batches that their memory was planned for (or,
    for `optimal` and `optimal-split`, searches the shortest one for the times of
    the stages, holding at most as many micro-batches as the memory of a device
    allows, and as a plan never longer than `1f1b` and `gpipe` where those fit;
    the program's attribute `takt.search` then states makespan, proven bound,
    method and work). With `file` it takes the compute actions of a schedule file
    instead; communication that the file has is checked, the next pass inserts
    its own. Checks the lists with the independent verifier, and writes one
    `pipe.role` for each list: its stages and their compute actions in order
    (`0F0 0F1 0B0 ...`). A list with several stages needs stages that share
    devices.

    Afterwards every micro-batch passes every stage forward once and, but for
    the mode `inference`, backward once, and the lists can run to the end. Stages and costs stay as they are.

    Reports: no stages; a schedule that is there already; an unknown name, with
    the known ones; a list that the verifier refuses, with the action that
    breaks the rule; a list that holds more micro-batches at once than the
    memory of a stage was computed for, or whose stages have not the same devices.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", /*default=*/"\"1f1b\"",
           "Name of the schedule: of a family (gpipe, 1f1b, ...), optimal or "
           "optimal-split; in the mode inference forward">,
    Option<"searchWork", "search-work", "int64_t", /*default=*/"20000000",
           "Work of the constraint solver before the best schedule so far is "
           "taken">,
    Option<"dumpSmt2", "dump-smt2", "std::string", /*default=*/"",
           "Folder that receives what the constraint solver is asked">,
    Option<"file", "file", "std::string", /*default=*/"",
           "Schedule file (CSV) to take instead of a generated schedule">
  ];
  let dependentDialects = ["::takt::pipe::PipeDialect"];
}

def InsertCommsPass : Pass<"takt-insert-comms", "::mlir::ModuleOp"> {
  let summary = "Add loads, transfers, reductions and updates to the schedule";
  let description = [{
    Needs roles (`takt-schedule`) and no lanes yet.

    Adds what the compute actions need to run: loads of inputs, activations and
    gradients between neighbouring stages of different roles, the all-reduce of
    replicated stages, the sums of parameters used on several stages, the
    optimizer step. Declares
    the channels and groups they use as `coll` ops and gives each role one list
    of actions for each lane.

    Afterwards every receive has one send of the same size in the same order on
    its channel, and every role ends with its updates.

    Reports: no schedule; communication that is there already; layers without
    costs for a stage's number of replicas.
  }];
  let dependentDialects = ["::takt::coll::CollDialect",
                           "::takt::pipe::PipeDialect"];
}

def OverlapCommsPass : Pass<"takt-overlap-comms", "::mlir::ModuleOp"> {
  let summary = "Reduce gradients in buckets beside the last backward";
  let description = [{
    Needs communication (`takt-insert-comms`).

    For every replicated stage that ends the compute of its role: divides its gradients into buckets of layers,
    cuts its last backward into pieces that end where buckets do, and chooses
    lane and order of the all-reduces against the pieces and the update
    (`takt/Overlap`: list scheduling with a bound, improved or proven by Z3 up to
    100 actions). Where the stage's last gradient leaves over the same class of
    links, it and the all-reduces may be set in order by waits in their lanes. The
    step is run under the virtual clock, and only a shorter one is kept; stages
    that end before it without buckets keep one all-reduce.

    Afterwards a stage has either one group and one all-reduce or a group and an
    all-reduce for each bucket. The compute actions of the roles, the stages and
    their objective stay as they are: the objective charges one all-reduce after
    compute and is an upper bound of this part of the step.

    Reports: no communication; buckets that are there already; more than two
    lanes.
  }];
  let options = [
    Option<"bucketSize", "bucket-size", "int64_t", /*default=*/"0",
           "Bytes that close a bucket; 0: the number of buckets with the "
           "shortest end of each stage">,
    Option<"lanes", "lanes", "int64_t", /*default=*/"1",
           "Lanes that reduce, of each rank: 1 or 2">,
    Option<"searchWork", "search-work", "int64_t", /*default=*/"20000000",
           "Work of the constraint solver before the best order so far is "
           "taken">,
    Option<"dumpSmt2", "dump-smt2", "std::string", /*default=*/"",
           "Folder that receives the questions to Z3; empty: none">
  ];
  let dependentDialects = ["::takt::coll::CollDialect",
                           "::takt::pipe::PipeDialect"];
  let statistics = [
    Statistic<"numBuckets", "buckets", "Buckets of stages with several">
  ];
}

#endif // TAKT_TRANSFORMS_PASSES
