// RUN: takt-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{an input needs a name}}
module attributes {t.a = #model.input<"">} {}

// -----

// expected-error@+1 {{input 'x' has -1 classes, allowed are 0 to 2147483647}}
module attributes {t.a = #model.input<"x", classes = -1>} {}

// -----

// expected-error@+1 {{the scale of an initialiser must be finite and not negative}}
module attributes {t.a = #model.init<normal, -0.5>} {}

// -----

// expected-error@+2 {{expected one of [zeros, ones, normal, uniform] for first values of a parameter, got: xavier}}
// expected-error@+1 {{failed to parse Model_InitAttr parameter 'kind'}}
module attributes {t.a = #model.init<xavier>} {}

// -----

// expected-error@+1 {{the global batch and the number of micro-batches must be at least 1}}
module attributes {t.a = #model.training<global_batch = 0>} {}

// -----

// expected-error@+1 {{the global batch of 10 samples is not a multiple of 4 micro-batches}}
module attributes {t.a = #model.training<global_batch = 10, micro_batches = 4>} {}

// -----

// expected-error@+1 {{65536 micro-batches, allowed are 65535}}
module attributes {t.a = #model.training<global_batch = 65536, micro_batches = 65536>} {}

// -----

// expected-error@+1 {{numbers of steps must not be negative}}
module attributes {t.a = #model.training<warmup_steps = -1>} {}

// -----

// A literal beyond the range of a double reads as infinity.
// expected-error@+1 {{training settings must be finite numbers}}
module attributes {t.a = #model.training<learning_rate = 1.0e999>} {}

// -----

// expected-error@+1 {{a profile needs at least 1 sample, got 0}}
module attributes {t.a = #model.profile<samples = 0>} {}

// -----

// expected-error@+1 {{times and bytes of a profile must not be negative}}
module attributes {t.a = #model.profile<forward = -1>} {}

// -----

// expected-error@+1 {{the phases of a cost differ in their number of entries}}
module attributes {t.a = #model.cost<forward = [1, 2], input_grad = [1], weight_grad = [1, 2]>} {}

// -----

// expected-error@+1 {{times of a cost must not be negative}}
module attributes {t.a = #model.cost<forward = [1], input_grad = [-1], weight_grad = [1]>} {}
