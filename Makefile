# The whole set-up: `make run` and `make test`. Everything else is one command away from these.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# Packages that tests use beyond Rust and a C compiler; a test whose package is missing says so.
TEST_PACKAGES := g++ chromium tshark valgrind python3 python3-pandas clang libelf-dev zlib1g-dev pkg-config iproute2 iputils-ping \
	memcached openvswitch-switch openvswitch-testcontroller python3-pymemcache python3-pylibmc python3-binary-memcached \
	python3-venv systemd bpftool ptpd ethtool iperf3 curl prometheus
# The eBPF programs, where what compiles them is here (asked after the packages are installed).
KERNEL = $(if $(shell command -v clang >/dev/null && ls /usr/include/libelf.h 2>/dev/null),--features plimsoll-bpf/kernel$(COMMA)plimsoll-host/kernel$(COMMA)plimsoll-linux/kernel$(COMMA)plimsoll-cli/kernel$(COMMA)plimsoll-circuits-live/kernel$(COMMA)plimsoll-chronos-memcached/kernel$(COMMA)plimsoll-chronos-search/kernel)
COMMA := ,
# Builds with the eBPF programs are in target/kernel, those without in target/release.
PROFILE = $(if $(KERNEL),kernel,release)
SCENARIO ?= scenarios/quickstart.toml
# On the build machine the fuzz targets run for a minute in all, before the tests; `make fuzz` is for longer.
FUZZ := $(if $(CI),FUZZ_SECONDS=$${FUZZ_SECONDS:-9} CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 fuzz/run)
# What cargo says of the programs of tests that it has built.
BUILT_TESTS := $(or $(CARGO_TARGET_DIR),target)/tests.json
# What is built once and thrown away needs neither an incremental cache nor debug information.
ifdef CI
export CARGO_INCREMENTAL := 0
export CARGO_PROFILE_DEV_DEBUG := 0
export CARGO_PROFILE_TEST_DEBUG := 0
endif

.PHONY: help
help: ## This list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: toolchain
toolchain:
	@command -v cargo >/dev/null || { \
	  echo "Rust is missing. Install it with: apt-get install rustup && rustup toolchain install 1.95" >&2; exit 2; }
	@command -v cc >/dev/null || { \
	  echo "A C linker is missing. Install it with: apt-get install build-essential" >&2; exit 2; }
	@version=$$(rustc --version | sed -E 's/rustc 1\.([0-9]+).*/\1/'); \
	  [ "$$version" -ge 95 ] || { echo "Rust 1.95 is needed, this is 1.$$version. Update it with: rustup update stable" >&2; exit 2; }

.PHONY: run
run: toolchain ## Build, then TCP, DCTCP and HULL on a rack, in a table and a report.
	cargo build --profile quick --quiet --locked -p plimsoll-cli
	@target/quick/plimsoll run $(SCENARIO)

.PHONY: kernel
kernel: toolchain ## Build target/kernel/plimsoll, with the eBPF programs (`emulate`, `host`, `breakdown`) and Parquet.
	@command -v clang >/dev/null && [ -f /usr/include/libelf.h ] || { \
	  echo "The eBPF programs need more. Install it with: apt-get install clang libelf-dev zlib1g-dev pkg-config" >&2; exit 2; }
	cargo build --profile kernel --locked -p plimsoll-cli --features kernel,parquet

.PHONY: release
release: toolchain ## Build target/guided/plimsoll, guided by a profile of its own runs; needs rustup's llvm-tools.
	deploy/guided $(if $(KERNEL),--features plimsoll-cli/kernel$(COMMA)plimsoll-cli/parquet)

.PHONY: servers
servers: toolchain ## Build chronos-memcached, chronos-search, chronos-openflow, chronos-load and the lock baselines.
	cargo build --release --locked $(foreach name,memcached search openflow load locked,-p plimsoll-chronos-$(name)) \
	  $(if $(KERNEL),--features plimsoll-chronos-memcached/kernel$(COMMA)plimsoll-chronos-locked/kernel)

PREFIX ?= /usr/local
# DESTDIR, UNITS and BUILT: deploy/install explains them.
INSTALL := PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" UNITS="$(UNITS)" BUILT="$(BUILT)" deploy/install
.PHONY: install
install: ## Install what has been built to PREFIX (/usr/local): programs, manual pages, completions, scenarios, units.
	@$(INSTALL)

.PHONY: uninstall
uninstall: ## Remove what `make install` has installed.
	@$(INSTALL) uninstall

.PHONY: deb
deb: kernel servers ## Build a Debian package in target/deb; needs debhelper.
	deploy/debian/build

.PHONY: tarball
tarball: toolchain ## Build statically linked programs, and pack them into target/tarball with what an installation has.
	deploy/tarball

.PHONY: check-all
check-all: toolchain ## The long checks that do not fit the suite; docs/internals/check-all.md has their latest results.
	deploy/check-all

.PHONY: lint
lint: toolchain ## Format, prose, links, recipes and the directions of imports, in seconds.
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path python/Cargo.toml --check
	cargo test --quiet --locked -p plimsoll-lint

.PHONY: test
test: lint test-packages ## `make lint`, clippy, and every test.
	$(if $(KERNEL),,@echo "no clang or no libelf-dev: the eBPF programs are off, and their tests are left out" >&2)
	cargo clippy --workspace --all-targets --locked $(KERNEL) -- -D warnings
	$(if $(KERNEL),cargo clippy --workspace --lib --bins --locked -- -D warnings)
	@# The wheel is a workspace of its own, which a change of the crates breaks unnoticed; Parquet is in it, too.
	cargo check --manifest-path python/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target) --locked
	$(FUZZ)
	cargo test --workspace --locked $(KERNEL) --doc
	cargo test --workspace --locked $(KERNEL) --lib --bins --tests --no-run --message-format=json-render-diagnostics \
	  > $(BUILT_TESTS)
	crates/testing/run $(BUILT_TESTS)

# What tests that fit no everyday suite need is installed by them; none of it is part of the repository.
PYTHON ?= python3
PYTHON_BUILD := $(abspath $(or $(CARGO_TARGET_DIR),target))/python
.PHONY: python
python: toolchain ## Build the Python wheel `plimsoll-net` into target/wheels.
	@[ -x $(PYTHON_BUILD)/maturin/bin/maturin ] || { \
	  $(PYTHON) -m venv $(PYTHON_BUILD)/maturin && \
	  $(PYTHON_BUILD)/maturin/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'; }
	CARGO_TARGET_DIR=$(PYTHON_BUILD)/build $(PYTHON_BUILD)/maturin/bin/maturin build --release --locked \
	  --manifest-path python/Cargo.toml --out $(dir $(PYTHON_BUILD))wheels

.PHONY: test-python
test-python: python ## Install the wheel into a fresh environment, and run its tests, mypy and pyright there.
	cargo fmt --manifest-path python/Cargo.toml --check
	CARGO_TARGET_DIR=$(PYTHON_BUILD)/build cargo clippy --release --locked --manifest-path python/Cargo.toml -- -D warnings
	rm -rf $(PYTHON_BUILD)/test
	$(PYTHON) -m venv $(PYTHON_BUILD)/test
	$(PYTHON_BUILD)/test/bin/pip install --quiet --disable-pip-version-check -r python/tests/requirements.txt \
	  "$$(ls -t $(dir $(PYTHON_BUILD))wheels/plimsoll_net-*.whl | head -1)"
	cd python/tests && $(PYTHON_BUILD)/test/bin/python -m pytest -c ../pyproject.toml --rootdir . .
	cd python && $(PYTHON_BUILD)/test/bin/mypy --cache-dir $(PYTHON_BUILD)/mypy plimsoll tests/typed.py tests/typed_scenario.py
	cd python/tests && $(PYTHON_BUILD)/test/bin/stubtest --ignore-disjoint-bases plimsoll._plimsoll
	cd python && $(PYTHON_BUILD)/test/bin/pyright --pythonpath $(PYTHON_BUILD)/test/bin/python

.PHONY: fuzz
fuzz: toolchain ## Coverage-guided fuzzing, on stable Rust: `make fuzz TARGET=memcached FUZZ_SECONDS=600`.
	fuzz/run $(TARGET)

SOAK_SECONDS ?= 600
.PHONY: soak
soak: toolchain ## The servers under all that clients do to them, for ten minutes: `make soak SOAK_SECONDS=3600`.
	PLIMSOLL_SOAK_SECONDS=$(SOAK_SECONDS) cargo test -p plimsoll-chronos-memcached --locked --test it -- soak:: --nocapture

TORTURE_SECONDS ?= 1800
SEED ?= 1
.PHONY: torture
torture: toolchain ## Attack every program from outside for 30 minutes: `make torture SEED=2 TORTURE_SECONDS=600`.
	cargo build --profile $(PROFILE) --quiet --locked -p plimsoll-cli -p plimsoll-torture \
	  $(if $(KERNEL),--features plimsoll-cli/kernel$(COMMA)plimsoll-circuits-live/kernel$(COMMA)plimsoll-chronos-memcached/kernel) \
	  $(foreach name,memcached search openflow,-p plimsoll-chronos-$(name))
	target/$(PROFILE)/plimsoll-torture --seconds $(TORTURE_SECONDS) --seed $(SEED)

.PHONY: kernels
kernels: toolchain ## The kernel's side on a distribution's kernel, in a virtual machine: `make kernels KERNEL_PACKAGE=NAME[/SUITE]`.
	kernels/run $(KERNEL_PACKAGE)

.PHONY: test-packages
test-packages:
	@missing=$$(for package in $(TEST_PACKAGES); do \
	    dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	elif [ -n "$$missing" ]; then \
	  echo "not installed, so some tests will skip: $$missing" >&2; \
	fi

.PHONY: bench
bench: toolchain ## Speed beside ns-3 on equal work, instructions per packet-hop, and schedules of circuits.
	cargo run --release --quiet --locked -p plimsoll-benches
	cargo run --release --quiet --locked -p plimsoll-benches -- instructions
	cargo bench --quiet --locked -p plimsoll-benches --bench circuits

MDBOOK_VERSION := 0.5.4
.PHONY: docs
docs: toolchain ## Build the documentation as a site, target/book/index.html; needs mdbook.
	@command -v mdbook >/dev/null || { \
	  echo "mdbook is missing. Install it with: cargo install mdbook --version $(MDBOOK_VERSION) --locked" >&2; exit 2; }
	@said=$$(mdbook build docs 2>&1) || { echo "$$said" >&2; exit 2; }; \
	  if grep -E "WARN|ERROR" <<< "$$said" >&2; then exit 1; fi
	@rm -rf target/book/examples && cp -r examples target/book/ && \
	  sed -i 's#href="\.\./examples/#href="examples/#g' target/book/*.html
	@echo "target/book/index.html"

.PHONY: reproduce
reproduce: toolchain ## The HULL evaluation, measured beside published.
	cargo build --release --quiet --locked -p plimsoll-cli
	target/release/plimsoll reproduce hull
