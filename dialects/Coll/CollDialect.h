//===- CollDialect.h - channels and groups of a program ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The `coll` dialect: over what the roles of a `pipe.program` communicate.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipe/PipeDialect.h"

#include "Coll/CollDialect.h.inc"
#include "Coll/CollEnums.h.inc"

#define GET_OP_CLASSES
#include "Coll/CollOps.h.inc"
