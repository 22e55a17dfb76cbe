#!/usr/bin/env bash
# Installs every Debian package that Takt builds and tests with, and builds it.
#   scripts/setup.sh             packages + build
#   scripts/setup.sh --with-debian-torch  also python3-torch for comparisons
#   scripts/setup.sh --with-torch    also a newer PyTorch in BUILD/torch-venv, if pip
#                                    can have it: several GB, at most 15 minutes
#   scripts/setup.sh --with-mpi      also Open MPI, and messages by it
#   TAKT_BUILD_DIR=DIR           where to build (default: build)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TAKT_BUILD_DIR:-build}

packages=(
  cmake ninja-build g++ ccache git python3
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  libz3-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev
  libflatbuffers-dev flatbuffers-compiler libeigen3-dev libopenblas-pthread-dev
  libgtest-dev libbenchmark-dev
)

missing() { dpkg-query -W -f='${Package} ${Status}\n' "$@" 2>/dev/null |
  awk '/ install ok installed$/{print $1}' | sort >"$tmp/have"
  printf '%s\n' "$@" | sort | comm -23 - "$tmp/have"; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
install() {
  local need
  need=$(missing "$@")
  [ -z "$need" ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "setup: these packages are missing, install them as root:" $need >&2
    return 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o DPkg::Lock::Timeout=600 -qq update
  # shellcheck disable=SC2086
  apt-get -o DPkg::Lock::Timeout=600 -qq install -y --no-install-recommends \
    $need >"$tmp/apt.log" 2>&1 || { cat "$tmp/apt.log" >&2; return 1; }
}

install "${packages[@]}"
if [ "${1:-}" = --with-torch ] || [ "${1:-}" = --with-debian-torch ]; then
  install python3-torch python3-numpy python3-yaml ||
    echo "setup: python3-torch is not to be had; its tests will be skipped" >&2
fi

mpi=()
if [ "${1:-}" = --with-mpi ]; then
  install openmpi-bin libopenmpi-dev
  mpi=(-DTAKT_ENABLE_MPI=ON)
fi

# PyTorch's own pipelining runtime runs Takt's schedule files in one test, which
# is skipped where this gives nothing.
if [ "${1:-}" = --with-torch ] && [ ! -x "$build/torch-venv/bin/python" ] &&
  [ -z "${TAKT_TORCH_PYTHON:-}" ]; then
  install python3-venv || true # the test is skipped without
  mkdir -p "$build"
  free=$(df -Pk "$build" | awk 'NR == 2 {print $4}')
  { [ "$free" -gt 16000000 ] && python3 -m venv "$build/torch-venv" &&
    timeout 900 "$build/torch-venv/bin/pip" install --quiet --no-cache-dir \
      'torch>=2.6' numpy pyyaml && "$build/torch-venv/bin/python" -c \
      'import torch.distributed.pipelining'; } >"$tmp/pip.log" 2>&1 || {
    rm -rf "$build/torch-venv"
    echo "setup: no PyTorch 2.6 or later; its test will be skipped" >&2
  }
fi

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
if [ ! -f "$build/build.ninja" ] || [ "${#mpi[@]}" -gt 0 ]; then
  # CMAKE_BUILD_TYPE defaults to Release.
  cmake -S . -B "$build" -G Ninja "${launcher[@]}" "${mpi[@]}" >"$tmp/cmake.log" 2>&1 ||
    { cat "$tmp/cmake.log" >&2; exit 1; }
fi
ninja -C "$build" ${TAKT_BUILD_TARGETS:-} >"$tmp/build.log" 2>&1 ||
  { tail -n 60 "$tmp/build.log" >&2; exit 1; }
