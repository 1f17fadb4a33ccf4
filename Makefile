# make help lists the targets. They need Rust, Python 3.11 or newer, and a C compiler.
# The Python parts live in .venv, from lock files with hashes; nothing outside this folder is changed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
# The virtual environment that maturin installs into, regardless of any active one.
IN_VENV := env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/$(VENV)" PATH="$(CURDIR)/$(BIN):$$PATH"

TARGET := $(or $(CARGO_TARGET_DIR),target)
# Cargo shows its progress on a terminal; elsewhere a line per stage is enough.
QUIET  := $(shell test -t 2 || echo --quiet)

.PHONY: help demo reproduce reproduce-quick test test-rust test-python test-python-with test-lab test-vm lab wasm bench bench-wire bench-gateway soak soak-gateway fuzz conformance peers bench-python docs site lint licenses sbom dist deb test-dist lock clean

help:
	@echo "make demo    a first figure: builds, runs one TCP-Peach study, writes results/demo/"
	@echo "make reproduce        all studies with all seeds, and one report, in results/reproduce/"
	@echo "make reproduce-quick  the same in reduced form, in minutes, in results/reproduce-quick/"
	@echo "make test    all tests: Rust, layering, WebAssembly, the lab in a browser, Python"
	@echo "make test-vm tests of the gateway under Debian's kernel in a virtual machine, which has ESP and VLANs; VM=repair for others (Debian, as root)"
	@echo "make lab     the page that skyhaul lab opens, in site/lab/dist/ (needs Node)"
	@echo "make bench   simulator speed, instructions per segment against the recorded baseline, comparison with ns-2, memory"
	@echo "make bench-wire  throughput over TUN, compared with the kernel and a packet generator (Linux, as root)"
	@echo "make bench-gateway  downloads over a GEO link with and without gateways (Linux, as root, with nft)"
	@echo "make soak    soak test of a host, three quarters of an hour; SOAK=--short for a minute, SOAK=\"--only flood\" for one scene (Linux, as root)"
	@echo "make soak-gateway    the same for two gateways, for an hour (Linux, as root, with nft)"
	@echo "make fuzz    fuzzing with libFuzzer; FUZZ=\"gateway_packets -max_total_time=300\" for another target or time"
	@echo "make conformance  conformance of our TCP and of this machine's kernel to the RFCs; CASES=rack for a subset"
	@echo "make bench-python  overhead of a congestion control written in Python"
	@echo "make peers   goodput of nine controls against ns-2 and ns-3; PEERS=--quick for a short run"
	@echo "make docs    API documentation in target/doc/"
	@echo "make site    the documentation site with search, lab and gallery, in target/site/html/VERSION/"
	@echo "make lint    formatting and lints, Rust and Python"
	@echo "make licenses  check licences and sources of all dependencies against deny.toml"
	@echo "make sbom    software bill of materials (CycloneDX), in dist/"
	@echo "make dist    wheels, source archive, static programs, Debian package, in dist/; make deb for the last alone"
	@echo "make test-dist  installs each of them into an empty environment and runs skyhaul demo"
	@echo "make lock    update the Python lock files (needs uv)"
	@echo "make clean   remove all build products"

# What is missing is said before anything is built.
.PHONY: needs needs-of-tests
needs:
	@PYTHON="$(PYTHON)" tools/check-needs.sh demo
needs-of-tests:
	@PYTHON="$(PYTHON)" tools/check-needs.sh test

$(VENV)/.python:
	@PYTHON="$(PYTHON)" tools/check-needs.sh demo >/dev/null
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build: requirements.lock $(VENV)/.python
	$(PIP) -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.build
	$(PIP) -r requirements-dev.lock
	@touch $@

# The extension module. Cargo decides what must be rebuilt.
define install
	@echo "make: building the Python module"
	$(IN_VENV) maturin develop --release --locked $(QUIET)
	@touch $(TARGET)/.built-demo
endef

demo: needs $(VENV)/.build
	$(install)
	$(BIN)/skyhaul demo

# The command; SKYHAUL=target/release/skyhaul is one that has been built.
SKYHAUL ?= cargo run --release --locked --quiet -p skyhaul-cli --

# Resumes after Ctrl-C. E.g. make reproduce REPRODUCE="peach-2001 --jobs 2".
reproduce:
	$(SKYHAUL) reproduce $(REPRODUCE)

reproduce-quick:
	$(SKYHAUL) reproduce --quick $(REPRODUCE)

# In this order; at the end, what was skipped and why. SKYHAUL_REQUIRE=all makes a skip a failure.
test: needs-of-tests
	@mkdir -p $(TARGET) && rm -f $(TARGET)/skipped.txt
	tools/check-needs-test.sh
	$(MAKE) test-rust
	$(MAKE) wasm
	$(MAKE) test-lab
	$(MAKE) test-python
	@touch $(TARGET)/.built-test
	@if [ -s $(TARGET)/skipped.txt ]; then echo "make: skipped:"; sort -u $(TARGET)/skipped.txt; else echo "make: nothing was skipped"; fi

# The same with another Python, in a virtual environment of its own. It gets the module as a wheel: one build serves all versions.
# E.g. make test-python-with OTHER=/usr/bin/python3.
OTHER ?= /usr/bin/python3
OTHER_VENV = $(TARGET)/$(notdir $(OTHER))-venv
test-python-with: $(VENV)/.dev
	@rm -rf $(TARGET)/wheel
	$(IN_VENV) maturin build --release --locked $(QUIET) --out $(TARGET)/wheel
	$(MAKE) PYTHON=$(OTHER) VENV=$(OTHER_VENV) $(OTHER_VENV)/.dev
	$(OTHER_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall $(TARGET)/wheel/*.whl
	$(OTHER_VENV)/bin/python -m pytest -rs

# The Python extension has no Rust tests: it is tested through Python.
test-rust:
	@echo "make: building the tests of the Rust crates"
	cargo run -p xtask --locked $(QUIET) -- layers
	$(PYTHON) tools/run-tests.py
	cargo test --workspace --exclude skyhaul-py --locked --quiet --doc
	cargo run -p rust-control --locked --quiet
	$(PYTHON) tools/scenario_format.py --check

wasm:
	tools/wasm-test.sh

lab:
	tools/lab.sh

# In a virtual machine with Debian's kernel, which has what that of this machine may lack: ESP, VLANs. E.g. make test-vm VM="repair firewall";
# tools/in-vm.sh says what it needs. VM_SECONDS=3000 allows more time where the processor is emulated.
VM ?= esp vlans
IN_VM = --config 'target."cfg(unix)".runner = "$(CURDIR)/tools/in-vm.sh"'
test-vm:
	SKYHAUL_REQUIRE=esp,vlan cargo test -p skyhaul-gateway --locked --test gateway $(IN_VM) -- $(VM)

# Needs Chromium.
test-lab:
	tools/lab.sh test

test-python: $(VENV)/.dev
	$(install)
	$(BIN)/python -m pytest -rs
	$(BIN)/python -m mypy
	$(BIN)/python -m mypy.stubtest skyhaul._core

bench: $(VENV)/.python
	cargo bench -p skyhaul-sim --locked
	cargo build --release --locked -p skyhaul-cli
	$(BIN)/python benches/instructions.py
	cargo build --profile packaged --locked -p skyhaul-cli
	$(BIN)/python benches/algorithms.py
	$(BIN)/python benches/video.py
	$(BIN)/python benches/moving.py --check
	$(BIN)/python benches/compare_ns2.py
	cargo run --profile packaged --locked --quiet -p skyhaul-sim --example memory

# Creates its own namespaces and TUN interfaces; needs root, or unshare -Urn make bench-wire.
bench-wire:
	cargo bench -p skyhaul-net --locked --bench throughput

# Creates its own namespaces; needs root and nft. E.g. make bench-gateway GATEWAY="none bbr --seconds 20", or piece by piece
# GATEWAY="repair --only quic,wireguard --loss 1e-2"; WireGuard needs the programs wireguard-go and wg, ESP the kernel's (CONFIG_INET_ESP).
# GATEWAY="repair --only ipsec" RUN_IN=vm measures it in a virtual machine with Debian's kernel.
bench-gateway:
	cargo bench -p skyhaul-gateway --locked --bench gateway $(if $(filter vm,$(RUN_IN)),$(IN_VM)) -- $(GATEWAY)

# Creates its own namespaces; needs root. CASES filters by parts of names: make conformance CASES="closing rack".
conformance:
	cargo test -p skyhaul-net --locked --test conformance -- $(CASES)

# Results in results/soak/. Resumes after Ctrl-C. Same requirements as bench-wire.
soak:
	cargo test --release -p skyhaul-net --locked --test soak -- --long $(SOAK)

soak-gateway:
	cargo test --release -p skyhaul-gateway --locked --test soak -- --long $(SOAK)

# Coverage for libFuzzer is a flag of the stable compiler; only sanitizers need a nightly one (cargo fuzz). Findings go to fuzz/artifacts, new
# inputs to fuzz/target/corpus.
FUZZ ?= gateway_packets -max_total_time=60
FUZZ_COVERAGE := level=4 inline-8bit-counters pc-table trace-compares stack-depth
FUZZ_FLAGS := -Cpasses=sancov-module $(foreach f,$(FUZZ_COVERAGE),-Cllvm-args=-sanitizer-coverage-$(f)) --cfg fuzzing -Cdebug-assertions
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
fuzz:
	cd fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --locked --target $(FUZZ_HOST) --bin $(firstword $(FUZZ))
	mkdir -p fuzz/artifacts fuzz/target/corpus/$(firstword $(FUZZ))
	cd fuzz && target/$(FUZZ_HOST)/release/$(firstword $(FUZZ)) -artifact_prefix=artifacts/ -timeout=10 \
	  target/corpus/$(firstword $(FUZZ)) corpus/$(firstword $(FUZZ)) $(wordlist 2,$(words $(FUZZ)),$(FUZZ))

bench-python: $(VENV)/.build
	$(install)
	$(BIN)/python benches/python_control.py

# Resumes after Ctrl-C; needs ns2, libns3-dev, g++ and pkg-config (Debian, Ubuntu). E.g. make peers PEERS="--jobs 2".
peers: $(VENV)/.dev
	$(install)
	$(BIN)/python -m pytest -rs -m peers
	cargo build --profile packaged --locked -p skyhaul-cli
	$(BIN)/python benches/compare_peers.py $(PEERS)

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# With the lab after make lab, the gallery after make reproduce-quick, the API after make docs.
SITE := target/site-venv
$(SITE)/.done: requirements-site.lock
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-site.lock
	@touch $@

site: $(SITE)/.done
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python tools/site.py

lint: $(VENV)/.dev
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p skyhaul-cli --no-default-features --locked -- -D warnings
	cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# With cargo-deny if it is installed; otherwise the same lists with only Cargo and Python.
licenses:
	@if command -v cargo-deny >/dev/null; then cargo deny check licenses bans sources; \
	  else $(PYTHON) tools/licenses.py; fi

DIST := target/dist-venv
$(DIST)/.done: requirements-dist.lock
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dist.lock
	@touch $@

# E.g. make dist PARTS="static deb".
dist: $(DIST)/.done
	PARTS="$(PARTS)" packaging/dist.sh

# The Debian package alone, in dist/.
deb:
	$(MAKE) dist PARTS="static deb"

test-dist:
	packaging/test.sh

sbom: $(DIST)/.done
	$(DIST)/bin/python tools/sbom.py dist/skyhaul.cdx.json

lock:
	uv pip compile pyproject.toml --extra plot --group build --universal --python-version 3.11 \
	  --generate-hashes --no-header --quiet --upgrade --output-file requirements.lock
	uv pip compile pyproject.toml --extra plot --extra frames --extra cluster --extra rl --group build --group test \
	  --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade --output-file requirements-dev.lock
	uv pip compile --group dist --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade \
	  --output-file requirements-dist.lock
	uv pip compile --group site --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade \
	  --output-file requirements-site.lock

clean:
	cargo clean
	rm -rf $(VENV) .cache results python/skyhaul/*.so
