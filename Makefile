# `make demo` shows what there is, `make test` is everything that must be green. Both install what is missing first.

SHELL := /bin/bash

# The toolchain that scripts/setup installed for this user.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Demo and tests use one profile, so that nothing is compiled twice.
TK := target/debug/tk
TRANSFORMER := target/debug/tk-transformer
PYTHON := .venv/bin/python
# `cargo xtask` with the features of all default members: nothing is compiled for it that tests have compiled.
XTASK := cargo run --quiet --bin xtask --

# Crates of the workspace are linted while they are compiled. `cargo` without `make` compiles them without lints, once more.
export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/rustc-lint

# Where scripts/setup installs NVIDIA's assembler: `tk` uses no `.venv` that is not active or named. The same is in
# .cargo/config.toml, for `cargo` without `make`.
export TK_VENV ?= $(CURDIR)/.venv

# The GPU that the kernels of the transformer are compiled for, beside the CPU; `cargo build` alone takes more of them.
export TK_TARGETS ?= sm_90a

# Kernels that a change of a pass leaves as they were are not assembled or simulated again, and programs of tests that are the
# same as when they passed do not run again; in CI everything does.
ifndef CI
export TK_UNCHANGED ?= $(CURDIR)/target/unchanged
endif

UNLESS_UNCHANGED := --config "target.'cfg(all())'.runner='$(CURDIR)/scripts/unless-unchanged'"

KERNELS := examples/*.tk stdlib/*.tk stdlib/*/*.tk docs/tutorial/solutions/*.tk docs/learn/*/solution.tk

# Runs a command as a stage, named after its target, which says how long it took.
STAGE = @scripts/stage $@

.PHONY: demo test setup build format lint compile unit doctest command programs kernels together once simulated sim sim64 sim-wmma sim-others numpy evidence transformer editors vscode python docs playground cmake tidy bless

demo: build
	@scripts/demo $(TK) $(TRANSFORMER)

test: setup format lint compile programs kernels together once tidy
	@scripts/stage --table
	@echo "make test: everything is green"

setup:
	@scripts/stage --begin
	@scripts/setup

build: setup
	cargo build --package tk-cli --package tk-transformer

format: setup
	$(STAGE) cargo fmt --all --check

# What no other stage compiles: the command without LLVM, which a machine that only checks and formats builds, and the
# benchmarks. `--workspace --bin tk` instead of `--package tk-cli`: the features of other crates stay as they are, so only
# the command is compiled again. Before `compile`, which puts the command with LLVM in its place.
lint: setup
	$(STAGE) bash -exc 'cargo build --workspace --no-default-features --features tk/jit --bin tk; \
		cargo build --package tk-bench --benches'

# The default members. The feature is the compiler inside of the library `tk`.
compile: lint
	$(STAGE) cargo test --features tk/jit --no-run

unit: compile
	$(STAGE) cargo test $(UNLESS_UNCHANGED) --features tk/jit --lib --bins --examples --test it

doctest: compile
	$(STAGE) cargo test --features tk/jit --doc

# The tests of the command, and of everything for each target.
command: compile
	$(STAGE) cargo test --features tk/jit --test command --test targets_amd

# The others that have tests. Their crates of ours are those of `compile`.
programs: compile
	$(STAGE) cargo test --package tk-transformer --package tk-gpu-bench

kernels: compile
	$(STAGE) bash -exc '$(TK) fmt --check examples stdlib docs tests/device; \
		$(TK) check $(KERNELS) examples/transformer/kernels/*.tk docs/learn/*/puzzle.tk; \
		$(TK) test $(KERNELS)'

# What runs what `compile` and `programs` have built, two at a time, the longest first: most of it takes one core.
together: compile programs
	@$(MAKE) --no-print-directory --old-file=compile --old-file=programs --jobs=2 --output-sync=target command unit sim-wmma sim64 sim numpy sim-others playground vscode python docs cmake evidence transformer doctest

# Nothing is compiled twice in all of this.
once: together
	$(STAGE) scripts/once

# The same on the simulated targets: what Hopper, CDNA and RDNA have.
simulated: sim sim64 sim-wmma sim-others

# The files of `tests/device` run on `sim` and `sim64` in `cli/tests/it/simulated.rs`, which compares more.
sim sim64: compile
	$(STAGE) $(TK) test --device $@ $(KERNELS)

sim-wmma: compile
	$(STAGE) $(TK) test --device $@ $(KERNELS) tests/device/*.tk

# What the other simulated targets have of their own: matrix instructions.
sim-others: compile
	$(STAGE) bash -exc 'for device in sim-blackwell sim-cdna4 sim-rdna4; do \
		$(TK) test --device $$device tests/device/{dot,f8,operands,stages}.tk; done'

numpy: compile
	$(STAGE) $(PYTHON) tests/numpy/compare.py --tk $(TK)

# Conversions, integers, orders, random numbers and functions against NumPy, ml_dtypes and mpmath.
evidence: compile
	$(STAGE) $(PYTHON) tests/evidence/evidence.py --tk $(TK)

# The language model against references in float64.
transformer: programs
	$(STAGE) scripts/transformer $(TRANSFORMER) $(PYTHON)

# The grammar, the extension for VS Code, and the language server by two clients that are not ours.
editors: compile
	@scripts/setup editors
	$(STAGE) env TK=$(abspath $(TK)) editors/tests/run

# The extension that `editors` packs, in a real Visual Studio Code: code-server in headless Chromium.
vscode: editors
	@scripts/setup vscode
	$(STAGE) env TK=$(abspath $(TK)) scripts/vscode

# The Python package, with NumPy and JAX on the CPU.
python: compile
	@scripts/setup python
	$(STAGE) scripts/python

# The packages for CMake and pkg-config.
cmake: compile
	@scripts/setup cmake
	$(STAGE) scripts/cmake $(TK)

# The site of the documentation in target/site/html, the lexer for its code, and the tree-sitter grammar.
docs: compile
	@scripts/setup docs
	$(STAGE) env TK=$(abspath $(TK)) scripts/docs

# The page with the compiler in it, in target/site/html/playground, tested in a browser. After the site, which empties its folder,
# and not beside `vscode`: both wait for what a browser shows, and its pages with endless loops take all cores.
playground: docs vscode
	@scripts/setup wasm
	$(STAGE) scripts/playground

tidy: compile
	$(STAGE) $(XTASK) tidy

# Regenerates pages and rendered messages. Read every changed line before committing.
bless:
	$(XTASK) ops
	TK_BLESS=1 cargo test --package tk-fmt --test it pages::
	TK_BLESS=1 cargo test --package tk-cli --test command spec::
