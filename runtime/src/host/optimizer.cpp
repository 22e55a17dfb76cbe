//===- optimizer.cpp - updates of parameters ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stochastic gradient descent with and without momentum, and AdamW (Loshchilov
// and Hutter 2019, arXiv 1711.05101; moments from Kingma and Ba 2015, arXiv
// 1412.6980). Every update leaves the gradient at zero for the next step.
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

namespace takt::rt::host {

namespace {
template <typename T>
TAKT_CLONES void sgd(T *w, T *g, int64_t n, T rate, T decay) {
  for (int64_t i = 0; i < n; ++i) {
    w[i] -= rate * (g[i] + decay * w[i]);
    g[i] = T(0);
  }
}

template <typename T>
TAKT_CLONES void momentum(T *w, T *g, T *v, int64_t n, T rate, T factor,
                          T decay) {
  for (int64_t i = 0; i < n; ++i) {
    T velocity = factor * v[i] + g[i] + decay * w[i];
    v[i] = velocity;
    w[i] -= rate * velocity;
    g[i] = T(0);
  }
}

/// Everything that does not depend on the element.
template <typename T>
struct AdamW {
  T keep; ///< 1 - rate * decay
  T beta1, oneMinus1;
  T beta2, oneMinus2;
  T rate;        ///< rate / (1 - beta1^t)
  T inverseRoot; ///< 1 / sqrt(1 - beta2^t)
  T epsilon;
};

template <typename T>
TAKT_CLONES void adamW(T *w, T *g, T *m, T *v, int64_t n, AdamW<T> a) {
  for (int64_t i = 0; i < n; ++i) {
    T first = a.beta1 * m[i] + a.oneMinus1 * g[i];
    T second = a.beta2 * v[i] + a.oneMinus2 * g[i] * g[i];
    m[i] = first;
    v[i] = second;
    w[i] = w[i] * a.keep -
           a.rate * first / (std::sqrt(second) * a.inverseRoot + a.epsilon);
    g[i] = T(0);
  }
}
} // namespace

template <typename T>
void sgdUpdate(const KernelCall<T> &call) {
  sgd<T>(call.operand(0), call.operand(1), call.dim(0),
         static_cast<T>(call.args.learningRate), call.scalar(0));
}
TAKT_INSTANTIATE(sgdUpdate)

template <typename T>
void momentumUpdate(const KernelCall<T> &call) {
  momentum<T>(call.operand(0), call.operand(1), call.operand(2), call.dim(0),
              static_cast<T>(call.args.learningRate), call.scalar(0),
              call.scalar(1));
}
TAKT_INSTANTIATE(momentumUpdate)

template <typename T>
void adamWUpdate(const KernelCall<T> &call) {
  const std::vector<double> &s = call.kernel.scalars;
  double rate = call.args.learningRate;
  double updates = double(call.args.step + 1);
  AdamW<T> a;
  a.keep = static_cast<T>(1 - rate * s[3]);
  a.beta1 = static_cast<T>(s[0]);
  a.oneMinus1 = static_cast<T>(1 - s[0]);
  a.beta2 = static_cast<T>(s[1]);
  a.oneMinus2 = static_cast<T>(1 - s[1]);
  a.rate = static_cast<T>(rate / (1 - std::pow(s[0], updates)));
  a.inverseRoot = static_cast<T>(1 / std::sqrt(1 - std::pow(s[1], updates)));
  a.epsilon = static_cast<T>(s[2]);
  adamW<T>(call.operand(0), call.operand(1), call.operand(2), call.operand(3),
           call.dim(0), a);
}
TAKT_INSTANTIATE(adamWUpdate)

} // namespace takt::rt::host
