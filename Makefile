# `make demo` shows what there is, `make test` is everything that must be green. Both install what is missing first.

SHELL := /bin/bash

# The toolchain that scripts/setup installed for this user.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Demo and tests use one profile, so that nothing is compiled twice.
TK := target/debug/tk
TRANSFORMER := target/debug/tk-transformer
PYTHON := .venv/bin/python

# Where scripts/setup installs NVIDIA's assembler: `tk` uses no `.venv` that is not active or named. The same is in
# .cargo/config.toml, for `cargo` without `make`.
export TK_VENV ?= $(CURDIR)/.venv

# The GPU that the kernels of the transformer are compiled for, beside the CPU; `cargo build` alone takes more of them.
export TK_TARGETS ?= sm_90a

KERNELS := examples/*.tk stdlib/*.tk stdlib/*/*.tk

.PHONY: demo test setup build format lint unit kernels together simulated sim sim64 sim-wmma numpy evidence transformer editors tidy bless

demo: build
	@scripts/demo $(TK) $(TRANSFORMER)

test: setup format lint unit kernels together editors tidy
	@echo "make test: everything is green"

setup:
	@scripts/setup

build: setup
	cargo build --package tk-cli --package tk-transformer

format: setup
	cargo fmt --all --check

lint: setup
	@scripts/lint

unit: setup
	cargo test --workspace

# `tk` was built by `unit`, for its tests of the command.
kernels: unit
	$(TK) fmt --check examples stdlib tests/device
	$(TK) check $(KERNELS) examples/transformer/kernels/*.tk
	$(TK) test $(KERNELS)

# What runs the commands that `unit` has built, two at a time: most of it takes one core.
together: unit
	@$(MAKE) --no-print-directory --old-file=unit --jobs=2 --output-sync=target sim sim64 sim-wmma numpy evidence transformer

# The same on the simulated targets: what Hopper, CDNA and RDNA have.
simulated: sim sim64 sim-wmma

sim sim64 sim-wmma: unit
	$(TK) test --device $@ $(KERNELS) tests/device/*.tk

numpy: unit
	$(PYTHON) tests/numpy/compare.py --tk $(TK)

# Conversions, integers, orders, random numbers and functions against NumPy, ml_dtypes and mpmath.
evidence: unit
	$(PYTHON) tests/evidence/evidence.py --tk $(TK)

# The language model against references in float64.
transformer: unit
	@scripts/transformer $(TRANSFORMER) $(PYTHON)

# The grammar, the extension for VS Code, and the language server by two clients that are not ours.
editors: unit
	@scripts/setup editors
	TK=$(abspath $(TK)) editors/tests/run

tidy: unit
	cargo xtask tidy

# Regenerates pages and rendered messages. Read every changed line before committing.
bless:
	cargo xtask ops
	TK_BLESS=1 cargo test --package tk-fmt --test it pages::
	TK_BLESS=1 cargo test --package tk-cli --test it spec::
