# What a user and CI do, each in one word. `make` alone lists the words.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Cargo's profiles. What users get is `release`; CI takes one profile for both, so that all crates are compiled once (`.ci/run`).
MODULE_PROFILE ?= release
export TEST_PROFILE ?= test
# What `make test` checks besides. In CI Clippy compiles (`.ci/rustc`), and so has no part of its own.
LINTS ?= lint
# Further arguments to pip. CI compiles no package in advance: what it imports is compiled by that.
INSTALLING ?=
# Of the profile's name, so that a module that was made for CI is never taken for the users'.
MODULE := $(VENV)/.careof-$(MODULE_PROFILE)

# Beside other work: what only computes leaves most of the cores to tests that wait for real time. A third of their share (nice 5) is
# left to it; with the least one (nice 19) it would stand still beside any busy neighbour.
YIELDING := nice -n 5
# Without make's job server (make 4.4 hands it to every command): a cargo that waits for another's lock would hold a core's token.
CARGO := env MAKEFLAGS= cargo

SCENARIO := scenarios/wavelan-to-gsm.toml
README_SCENARIO := scenarios/ipv6/wifi-to-lte.toml

# One interpreter for every build of the extension, so that cargo does not build it again for another.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -name target -prune -o -type f -print)

ORACLES := ../shared/oracles

.PHONY: help setup packages wheel docs demo test tested compiled hunt fuzz formatted lint lint-rust lint-python format bench bench-bindings \
	bench-silent-death bench-silent-outage \
	bench-false-switch bench-soft-handovers bench-multipath bench-path-deaths oracles worlds outages moves lock clean docs/wavelan-to-gsm.png \
	docs/wifi-to-lte.png docs/wifi-to-lte-assisted.png

help:
	@echo "make setup   build careof and careof-agent into $(VENV)"
	@echo "make demo    simulate a download from WaveLAN to GSM, with report, into demo/"
	@echo "make test    everything that must pass: lint, the Rust tests, the tests across languages"
	@echo "make fuzz    run the fuzz targets for a while; they need the nightly toolchain (TARGET=, SPAN=)"
	@echo "make hunt    random cases that no test has drawn before; SEED=N draws those of N again, ROUNDS=N as many seeds"
	@echo "make lint    formatting, clippy, ruff, types"
	@echo "make format  format all sources"
	@echo "make bench   packet-hops per CPU second beside ns-2 and ns-3, throughput of a tunnel on this machine,"
	@echo "             what assists bring on real hosts"
	@echo "make bench-bindings  a home agent with 100,000 bindings: registrations a second, seconds to serve after kill -9, latency under"
	@echo "             attack (BINDINGS='--nodes 20000 --proxy-arp' for other ones)"
	@echo "make bench-silent-death bench-silent-outage bench-false-switch bench-soft-handovers  what daemons promise, measured between"
	@echo "             real hosts: 15, 6, 30 and 10 minutes (RUNS=N, MINUTES=N, AT_ONCE=N)"
	@echo "make bench-multipath bench-path-deaths  one flow over several links, measured between real hosts: two hours and 2 minutes"
	@echo "make worlds outages  scenarios of Mobile IPv4 and outages over Mobile IPv6 in both worlds: two hours and 20 minutes (JOBS=N)"
	@echo "make moves   ten moves over HMIPv6 and over FMIPv6 in both worlds, with the default assists: ten minutes (JOBS=N)"
	@echo "make oracles the TCP models beside real kernels, printed predictions and ns-2, as far as these are there"
	@echo "make wheel   dist/careof-*.whl: careof and careof-agent for machines without Rust"
	@echo "make docs    the pages of docs/ as a site, in site/"
	@echo "make lock    renew requirements.lock and that of the docs"
	@echo "make clean   remove everything that was built"

setup: $(MODULE)

packages: $(VENV)/.packages

# The packages, in the very versions of the lock file.
$(VENV)/.packages: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: careof needs Python 3.11 or newer" >&2; \
		  echo "  hint: make setup PYTHON=python3.12, or wherever yours is" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(INSTALLING) --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

# The native module, the command and the daemon, whose crates are compiled once for both; Python sources are used where they stand. They are compiled, as pip does for what it
# installs: without, starting takes more than twice as long wherever Python may not keep what it has compiled.
$(MODULE): $(VENV)/.packages $(NATIVE_SOURCES)
	@command -v cargo >/dev/null || \
		{ echo "error: careof needs Rust, and there is no cargo" >&2; \
		  echo "  hint: install Rust (see CONTRIBUTING.md)" >&2; exit 1; }
	@rm -f $(VENV)/.careof*
	MAKEFLAGS= PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) \
		$(BIN)/maturin develop --profile $(MODULE_PROFILE) --locked --quiet
	$(CARGO) build --profile $(MODULE_PROFILE) --locked --quiet -p careof-python -p careof-agent --bin careof-agent
	install target/$(MODULE_PROFILE)/careof-agent $(BIN)/careof-agent
	$(BIN)/python -m compileall -q python
	@touch $@

# What maturin puts into the wheel beside the packages, if it is there: programs, and what belongs below share/.
WHEEL_DATA := careof._careof.data

wheel: setup
	@$(MAKE) --no-print-directory packed

# The wheel of what was built.
.PHONY: packed
packed: BINARY ?= $(BIN)/careof-agent
packed: MATURIN ?= $(CURDIR)/$(BIN)/maturin
packed: DIST ?= dist
packed:
	@rm -rf $(WHEEL_DATA) $(DIST)/careof-*.whl
	@install -D -s $(BINARY) $(WHEEL_DATA)/scripts/careof-agent
	@share=$(WHEEL_DATA)/data/share && \
	mkdir -p $$share/careof $$share/bash-completion/completions $$share/zsh/site-functions $$share/fish/vendor_completions.d && \
	cp -r scenarios $$share/careof/ && \
	for command in careof careof-agent; do \
		$(BIN)/$$command man $$share/man/man1 && \
		$(BIN)/$$command completions bash > $$share/bash-completion/completions/$$command && \
		$(BIN)/$$command completions zsh > $$share/zsh/site-functions/_$$command || exit; \
	done && \
	$(BIN)/careof-agent completions fish > $$share/fish/vendor_completions.d/careof-agent.fish
	PATH="$(dir $(MATURIN)):$$PATH" MAKEFLAGS= $(MATURIN) build --profile $(MODULE_PROFILE) --locked --quiet --out $(DIST)
	@rm -rf $(WHEEL_DATA)
	@ls $(DIST)/*.whl

# What only `make docs` needs has a lock file and an environment of its own.
$(VENV)-docs/.packages: requirements-docs.lock
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install $(INSTALLING) --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# A link or an anchor that leads nowhere is an error.
docs: $(VENV)-docs/.packages
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict
	@echo "The site: site/index.html"

demo: setup
	$(BIN)/careof run $(SCENARIO) --out demo
	@echo; echo "The report: demo/report.html"

# Compiling and the tests begin with what they need; lint takes what the others leave of the cores.
test:
	@$(MAKE) --no-print-directory --jobs=3 compiled tested $(LINTS)

# The Rust tests first: a machine that runs both at once is late for those on real hosts. In Python one of the workers waits for
# such a host most of the time.
tested: setup compiled
	$(BIN)/python tests/rust.py
	$(BIN)/python -m pytest --quiet --numprocesses=$$(($$(nproc) + 1)) --dist=loadfile --no-loadscope-reorder

compiled:
	$(CARGO) test --workspace --locked --quiet --profile $(TEST_PROFILE) --no-run

# Prints the seed of each round; `make test` draws the same cases each time.
hunt:
	@$(PYTHON) tests/hunt.py $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS))

# Coverage-guided, with the models of `make test`: TARGET=resequencer for one, SPAN=600 for ten minutes of each. Needs a nightly compiler and
# a C++ compiler; libfuzzer-sys brings the rest. What a target finds is below fuzz/artifacts.
FUZZED = $(or $(TARGET),resequencer bond alliance)
FUZZ_TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p')
fuzz:
	RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
		-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
		-Cllvm-args=-sanitizer-coverage-trace-compares" $(YIELDING) $(CARGO) +nightly build --release --locked \
		--manifest-path fuzz/Cargo.toml --target $(FUZZ_TRIPLE) $(FUZZED:%=--bin %)
	@for target in $(FUZZED); do \
		mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target; \
		$(YIELDING) fuzz/target/$(FUZZ_TRIPLE)/release/$$target -max_total_time=$(or $(SPAN),60) -max_len=8192 -print_final_stats=1 \
			-artifact_prefix=fuzz/artifacts/$$target/ fuzz/corpus/$$target || exit; \
	done

lint: formatted lint-rust lint-python

formatted:
	cargo fmt --all --check

lint-rust: $(VENV)/.packages
	$(YIELDING) $(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings

lint-python: setup
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(YIELDING) $(BIN)/mypy --no-error-summary
	$(YIELDING) $(BIN)/stubtest careof._careof

format: setup
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# The two pictures in README.md.
docs/wifi-to-lte.png docs/wifi-to-lte-assisted.png: setup
	$(BIN)/careof run $(README_SCENARIO) --capture none --out run/before --plot png
	cp run/before/handover-download.png docs/wifi-to-lte.png
	$(BIN)/careof run $(README_SCENARIO) --capture none --out run/after --plot png --set assist=default
	cp run/after/handover-download.png docs/wifi-to-lte-assisted.png

# The picture in docs/wavelan-to-gsm.md.
docs/wavelan-to-gsm.png: setup
	$(BIN)/careof run $(SCENARIO) --seed 7 --out demo --plot png
	cp demo/plot-download.png $@

bench: setup
	$(BIN)/python benches/run.py
	cargo test --workspace --locked --quiet --test all -- --ignored --skip daemons::measurements
	$(BIN)/python -m pytest --quiet -m measures

# Of the release build, in namespaces of its own; the store is below TMPDIR, whose disk counts.
bench-bindings:
	cargo build --release --locked --quiet -p careof-agent --bin careof-agent --example bindings
	target/release/examples/bindings $(BINDINGS)

# What daemons promise, between real hosts on a machine that has nothing else to do: a table, and a failure where it is not held.
# RUNS, MINUTES and AT_ONCE say how much is done, and how much at the same time.
MEASURE := CAREOF_REQUIRE_LAB=1 cargo test --locked --quiet -p careof-agent --test all -- --ignored --nocapture --exact

# A path in use dies with its interface up, and another one is there.
bench-silent-death:
	$(MEASURE) daemons::measurements::paths::silent_death

# The only path is silent for 3 and 8 s.
bench-silent-outage:
	$(MEASURE) daemons::measurements::paths::silent_outage

# Lossy paths that nobody should leave.
bench-false-switch:
	$(MEASURE) daemons::measurements::paths::false_switch

# `careof-agent switch` between a slow and a fast path, with the default assists and without.
bench-soft-handovers:
	$(MEASURE) daemons::measurements::soft_handovers::soft_handovers

# One flow over two links, for each of sixteen pairs: by each alone, by both with `auto`, by the kernel's Multipath TCP. RUNS, SPAN,
# PROFILES="baseline rtt_40" and CONTROLS=bbr say how much of it; REORDER=1 lets jitter change the order within a link.
bench-multipath:
	$(MEASURE) daemons::measurements::multipath::profiles

# Ten deaths and returns of three links, and one of the home agent, during a download: how long nothing arrives. SEED=, DEATHS=.
bench-path-deaths:
	$(MEASURE) daemons::measurements::multipath::path_deaths

# The same scenarios in both worlds, over ten phases of their handovers each: two hours, less with JOBS=4 on a machine
# that has nothing else to do.
WORLDS ?= wavelan-to-gsm gsm-to-wavelan wifi-to-lte lte-to-lte
worlds: setup
	@for name in $(WORLDS); do for congestion in reno cubic; do \
		$(BIN)/careof compare scenarios/$$name.toml --worlds --repeat 10 $(if $(JOBS),--jobs $(JOBS)) \
			--out run/worlds/$$name-$$congestion --set flow.tcp.profile=linux --set flow.tcp.variant=linux \
			--set flow.tcp.congestion=$$congestion $$([ $$name = wavelan-to-gsm ] && echo --set duration=40s) || exit; \
	done; done

# An outage between two access networks over Mobile IPv6 in both worlds, downloads and uploads, five phases each: 20 minutes, less with
# JOBS=4 on a machine that has nothing else to do. ASSIST= runs them without assists.
OUTAGES ?= 300ms 1s 3s 8s
ASSIST ?= default
outages: setup
	@for ends in correspondent:mobile mobile:correspondent; do for outage in $(OUTAGES); do \
		$(BIN)/careof compare scenarios/ipv6/outage.toml --worlds --repeat 5 $(if $(JOBS),--jobs $(JOBS)) \
			--out run/outages/from-$${ends%:*}-$$outage --set flow.from=$${ends%:*} --set flow.to=$${ends#*:} \
			--set handover.interruption=$$outage $(if $(ASSIST),--set assist=$(ASSIST)) || exit; \
	done; done

# Ten moves of a download through anchor points, and between access routers, in both worlds. ASSIST= runs them without assists.
moves: setup
	@for protocol in hmipv6 fmipv6; do \
		$(BIN)/careof compare scenarios/lab/ten-moves-$$protocol.toml --worlds --repeat 3 $(if $(JOBS),--jobs $(JOBS)) \
			--out run/moves/$$protocol $(if $(ASSIST),--set assist=$(ASSIST)) || exit; \
	done

# One line a family; what is not on this machine is named with what it needs.
oracles: setup
	$(BIN)/careof oracle all $(ORACLES)

LOCKED := $(VENV)-lock/bin/uv pip compile --universal --python-version 3.11 --upgrade --quiet \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	{ echo '# Exact versions for `make setup`, made by `make lock` from pyproject.toml.'; \
	  $(LOCKED) pyproject.toml --extra dask --group tools; } > requirements.lock.new
	mv requirements.lock.new requirements.lock
	{ echo '# Exact versions for `make docs`, made by `make lock` from pyproject.toml.'; $(LOCKED) --group docs; } > requirements-docs.lock.new
	mv requirements-docs.lock.new requirements-docs.lock
	rm -rf $(VENV)-lock

clean:
	rm -rf target fuzz/target $(VENV) $(VENV)-lock $(VENV)-docs $(WHEEL_DATA) demo run dist site .mypy_cache .ruff_cache .pytest_cache
	rm -f python/careof/*.so
	find python tests benches -name __pycache__ -type d -prune -exec rm -rf {} +
