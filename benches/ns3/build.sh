#!/bin/sh
# Builds the ns-3 driver.   usage: [CXX=g++] [OUT=target/ns3-driver] build.sh
# OUT is relative to the repository root. Exit 77: ns-3 is not installed (test runners' "skip").
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
CXX=${CXX:-g++}
OUT=${OUT:-target/ns3-driver}

if ! echo '#include <ns3/core-module.h>' | "$CXX" -std=c++17 -fsyntax-only -x c++ - 2>/dev/null; then
    echo "skip: the ns-3 headers are missing. To install them (Debian, Ubuntu):" >&2
    echo "    apt-get install -y --no-install-recommends ns3 libns3-dev g++" >&2
    exit 77
fi

# pkg-config knows the version, but its --cflags name an include folder that does not exist.
version=$(pkg-config --modversion ns3-core 2>/dev/null || echo unknown)
mkdir -p "$(dirname "$OUT")"
"$CXX" -std=c++17 -O2 -Wall -Wextra "-DNS3_VERSION=\"$version\"" -o "$OUT" \
    "$here/driver.cc" \
    -lns3-internet -lns3-point-to-point -lns3-traffic-control -lns3-bridge \
    -lns3-network -lns3-stats -lns3-core
echo "$OUT"
