# Everything is built with Go alone. `make help` lists the targets.

GARDEN   := test/garden
LINT     := .bin/golangci-lint
LINT_VERSION := v2.15.0
VALE     := .bin/vale
VALE_VERSION := v3.15.2
GORELEASER := .bin/goreleaser
GORELEASER_VERSION := v2.14.0
GOVULNCHECK := .bin/govulncheck
GOVULNCHECK_VERSION := v1.9.0
HELM     := .bin/helm
HELM_VERSION := v3.21.4
KUBECTL  := .bin/kubectl
DOCS     := .bin/site
BINARIES := broker provisioner bundler ebctl sandbox
# One set of flags everywhere, so that builds and tests share the build cache. Without debug information, a build with an empty cache takes
# 8 % less CPU time. A debugger needs a build with plain GOFLAGS.
SHARED_FLAGS := -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out $(SHARED_FLAGS),$(GOFLAGS)) $(SHARED_FLAGS)
# At Go's default of 100, a fifth of the compiler's CPU time is garbage collection. At 800, compiling SQLite, the largest package, takes 1.8 GB.
GO_BUILD := GOGC=$(or $(GOGC),800) go build -ldflags '-s -w'
# go test links more than a hundred binaries. Without debug information and symbols, this takes a fifth less CPU time. make lint runs go
# vet, which takes eight CPU minutes with an empty cache, because it analyzes all dependencies.
GO_TEST := go test -ldflags='-s -w' -vet=off

comma := ,
empty :=
space := $(empty) $(empty)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The sandbox starts before the bundle provisioner is built, which takes a third of the time of the sandbox's first build.
RUN_BUNDLER := nice env $(subst ',",$(GO_BUILD)) -o bin/bundler ./cmd/bundler && exec bin/bundler

.PHONY: run
run: ## Build and start the sandbox: broker, provisioner, bundle provisioner, the fake garden, SQLite under .sandbox/. Ctrl-C stops it.
	@$(GO_BUILD) -o bin/sandbox ./cmd/sandbox && exec bin/sandbox --bundler='$(RUN_BUNDLER)'

.PHONY: run-garden
run-garden: garden ## Like run, with the local garden: etcd, kube-apiserver and gardener-apiserver as processes.
	@$(GO_BUILD) -o bin/sandbox ./cmd/sandbox && exec bin/sandbox --garden=.bin/garden --bundler='$(RUN_BUNDLER)'

.PHONY: build
build: ## Put the binaries into bin/, and the man pages and completions of ebctl into bin/share/.
	$(GO_BUILD) -o bin/ $(addprefix ./cmd/,$(BINARIES))
	@if [ "$$(go env GOOS GOARCH)" = "$$(go env GOHOSTOS GOHOSTARCH)" ]; then \
		SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)} bin/ebctl manual bin/share; fi

.PHONY: garden
garden: ## Build the parts of the local garden into .bin/ (takes minutes the first time).
	@$(GARDEN)/build.sh

# Packages that run whole services or API servers: end to end, under injected faults, and through hundreds of OSB requests. The slowest packages
# start first. Their tests mostly wait, so more of them run concurrently than the smallest machine has cores: system tests and unit tests of
# two packages each, with four tests each.
SYSTEM_TESTS    := ./test/e2e ./test/crash ./test/bundles ./bundle/controller/deployments ./test/upgrade ./test/osb ./test/linear ./test/ha \
	./test/console ./test/kymacompat ./test/tutorials ./bundle/service
SLOW_UNIT_TESTS := ./broker/orchestration ./storage ./broker ./broker/service ./provisioner/orders ./test/hostile
UNIT_TESTS       = $(SLOW_UNIT_TESTS) $$(go list ./... | grep -vE '/($(subst $(space),|,$(patsubst ./%,%,$(SYSTEM_TESTS))))$$')
TEST_PACKAGES   ?= 2
TEST_PARALLEL   ?= 4
# SAMPLE is the percentage of the system tests that run. All of them take half an hour. TEST_SEED selects others; by default the commit selects
# them, so that a second run of the same tests finds their results in the cache.
SAMPLE          ?= 15
SAMPLED          = skip=$$(go run ./test/sample -percent $(SAMPLE) -seed "$${TEST_SEED:-$$(git rev-parse HEAD 2>/dev/null)}" $(1))
# A fifth of the tests' time is garbage collection; memory is sufficient.
test test-unit test-garden: export GOGC ?= 300

.PHONY: test
test: postgres patroni chromium garden helm kubectl ## Run the unit tests, and SAMPLE percent (15) of the system tests: SQLite, PostgreSQL, end to end on both gardens, the console in a browser. SAMPLE=100 runs all of them.
	@$(MAKE) --no-print-directory --jobs=2 test-system test-units test-garden-module

.PHONY: test-unit
test-unit: postgres ## Run the unit tests and the storage suites. Leaves out the engine's tests on PostgreSQL and the system tests.
	$(GO_TEST) -short -p 3 -parallel $(TEST_PARALLEL) $(UNIT_TESTS)

.PHONY: test-garden
test-garden: postgres garden ## Run the end-to-end tests, on the local garden and over real processes.
	@$(MAKE) --no-print-directory --jobs=2 SAMPLE=100 SYSTEM_TESTS=./test/e2e test-system test-garden-module

# Targets that run concurrently. go test prints the output of a package when it has ended, so outputs do not mix. If a target fails, make
# fails after the others have ended.
.PHONY: test-system test-units test-garden-module
test-system:
	@$(call SAMPLED,$(SYSTEM_TESTS)) && \
		$(GO_TEST) -tags garden -p $(TEST_PACKAGES) -parallel $(TEST_PARALLEL) -timeout 60m -skip "$$skip" $(SYSTEM_TESTS)

test-units:
	$(GO_TEST) -tags garden -p $(TEST_PACKAGES) -parallel $(TEST_PARALLEL) -timeout 40m $(UNIT_TESTS)

test-garden-module:
	@$(call SAMPLED,$(GARDEN)/gardener/garden) && \
		cd $(GARDEN)/gardener && $(GO_TEST) -parallel $(TEST_PARALLEL) -timeout 20m -skip "$$skip" ./...

SOAK_DURATION ?= 10m
FUZZ_DURATION ?= 30s

.PHONY: soak
soak: postgres patroni garden ## Run the replica scenarios, the failovers of PostgreSQL, the model of the OSB API and the linearizability check for SOAK_DURATION (10m) each, then fuzz. TEST_SEED repeats a run.
	SOAK_DURATION=$(SOAK_DURATION) go test -tags garden -timeout 0 -count 1 -v -run '^(TestReplicas|TestProvisionerReplicas|TestAccountPoolOfManyTenants.*|TestAdoptedInstancesOnLocalGarden)$$' ./test/e2e
	SOAK_DURATION=$(SOAK_DURATION) go test -timeout 0 -count 1 -v ./test/ha
	SOAK_DURATION=$(SOAK_DURATION) go test -timeout 0 -count 1 -v -run '^TestModel$$' ./test/osb
	SOAK_DURATION=$(SOAK_DURATION) go test -timeout 0 -count 1 -v -run '^TestLinearizable$$' ./test/linear
	SOAK_DURATION=$(SOAK_DURATION) go test -timeout 0 -count 1 ./test/crash
	SOAK_DURATION=$(SOAK_DURATION) go test -timeout 0 -count 1 -v -run '^(TestCrashes|TestFleetCrashes|TestFleetStorm)$$' ./broker/orchestration
	SOAK_DURATION=$(SOAK_DURATION) go test -tags garden -timeout 0 -count 1 ./test/bundles
	@$(MAKE) --no-print-directory fuzz

# go test fuzzes one target of one package at a time. There is a target for each decoder; as plain tests, they run with their seeds only.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZ_DURATION (30s, about 40 minutes in total).
	@grep -rn --include='*_test.go' -o '^func Fuzz[A-Za-z]*' . | sort | while IFS=: read -r file _ target; do \
		echo "$${file%/*} $${target#func }"; \
		go test -timeout 0 -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZ_DURATION) -fuzzminimizetime 1x "$${file%/*}" < /dev/null || exit 1; done

.PHONY: postgres
postgres: ## Find or install PostgreSQL for the tests.
	@test/postgres.sh

.PHONY: chromium
chromium: ## Find or install Chromium for the tests of the console.
	@test/chromium.sh

.PHONY: screenshots
screenshots: postgres chromium ## Write the screenshots of the console into docs/images.
	CONSOLE_SCREENSHOTS=$(CURDIR)/docs/images go test -count 1 -run '^TestScreenshots$$' ./test/console

.PHONY: patroni
patroni: postgres ## Find or install Patroni, etcd, HAProxy, PgBouncer and sqlite3 for the tests.
	@test/patroni.sh

.PHONY: helm
helm: $(HELM) ## Build Helm into .bin/, for the tests of the chart.

$(HELM):
	GOBIN=$(CURDIR)/.bin go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)

.PHONY: kubectl
kubectl: $(KUBECTL) ## Build kubectl into .bin/, for the tests of the pages on installation.

KUBECTL_VERSION := -X k8s.io/component-base/version.gitVersion=v1.36.2

$(KUBECTL): test/garden/kubectl/main.go test/garden/kubectl/go.mod
	cd test/garden/kubectl && go build -ldflags '-s -w $(KUBECTL_VERSION)' -o $(CURDIR)/$@ .

VERSION          ?=
CHART_DIR        ?= bin/chart
CHART_REPOSITORY ?= oci://ghcr.io/environment-broker/charts
HELM_FLAGS       ?=

.PHONY: chart chart-push
chart: $(HELM) ## Package the Helm chart for the release VERSION (such as 1.2.3) into bin/chart/, also unpacked.
	@test -n "$(VERSION)" || { echo "set VERSION, such as VERSION=1.2.3" >&2; exit 1; }
	@rm -rf $(CHART_DIR) && mkdir -p $(CHART_DIR)
	$(HELM) package resources/chart --version $(VERSION) --app-version $(VERSION) --destination $(CHART_DIR)
	@tar -xzf $(CHART_DIR)/environment-broker-$(VERSION).tgz -C $(CHART_DIR)

chart-push: $(HELM) ## Push the packaged chart to CHART_REPOSITORY (oci://ghcr.io/environment-broker/charts).
	$(HELM) push $(CHART_DIR)/environment-broker-*.tgz $(CHART_REPOSITORY) $(HELM_FLAGS)

IMAGES_DIR ?= bin/images

.PHONY: images
images: ## Write the images of the release VERSION (such as 1.2.3) as OCI layouts for amd64 and arm64 into bin/images/, without Docker.
	@test -n "$(VERSION)" || { echo "set VERSION, such as VERSION=1.2.3" >&2; exit 1; }
	@for architecture in amd64 arm64; do \
		GOOS=linux GOARCH=$$architecture $(GO_BUILD) -o $(IMAGES_DIR)/linux_$$architecture/ $(addprefix ./cmd/,$(BINARIES)) || exit 1; done
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)} \
		go run ./internal/packaging/images -programs $(IMAGES_DIR) -out $(IMAGES_DIR) -version $(VERSION)

.PHONY: lint
lint: $(LINT) $(VALE) ## Check code, prose and links.
	$(LINT) run --allow-parallel-runners ./...
	$(LINT) run --allow-parallel-runners --build-tags garden ./test/e2e/... ./broker/kyma ./bundle/... ./provisioner/installation/... ./internal/packaging ./internal/clients/applier/... ./internal/clients/clusterclient/... ./internal/ebctl/... ./test/bundles
	cd $(GARDEN)/kubernetes && $(CURDIR)/$(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	cd $(GARDEN)/gardener && $(CURDIR)/$(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	cd test/garden/kubectl && $(CURDIR)/$(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...
	$(VALE) --output=line .
	go test -count 1 ./test/docs/links

$(LINT):
	GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

# Vale parses Go comments with a C library, so building it needs a C compiler.
$(VALE):
	CGO_ENABLED=1 GOBIN=$(CURDIR)/.bin go install github.com/errata-ai/vale/v3/cmd/vale@$(VALE_VERSION)

VULNERABILITY_DATABASE ?= https://vuln.go.dev

# govulncheck exits with 3 if the code calls vulnerable functions, and with other codes if it could not check.
.PHONY: vulnerabilities
vulnerabilities: $(GOVULNCHECK) ## Check the code for known vulnerabilities. Downloads their list from VULNERABILITY_DATABASE (https://vuln.go.dev).
	@status=0; $(GOVULNCHECK) -db $(VULNERABILITY_DATABASE) ./... || status=$$?; \
	case $$status in \
		0) ;; \
		3) echo "The code calls vulnerable functions: docs/contributor/vulnerabilities.md says what to do." >&2; exit 1 ;; \
		*) echo "NOT CHECKED: govulncheck failed. It needs the vulnerability database $(VULNERABILITY_DATABASE);" \
			"set VULNERABILITY_DATABASE to the address of a copy (https:// or file://)." >&2; exit 1 ;; \
	esac

$(GOVULNCHECK):
	GOBIN=$(CURDIR)/.bin go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

.PHONY: generate
generate: ## Generate code and reference pages. Leaves no diff when nothing has changed.
	go generate ./...

.PHONY: docs-tools
docs-tools: $(DOCS)/.stamp ## Install the generator of the site into .bin/. Needs npm.

.PHONY: docs
docs: docs-tools ## Build the site of the documentation into dist/docs, and check it. Needs npm; DOCS_BASE is the path of the site on its server (/).
	$(VITEPRESS) build docs

.PHONY: docs-test
docs-test: docs chromium ## Build the site of the documentation, and test its search in a browser.
	go test -tags site -count 1 -run '^TestSearchOfSite$$' ./test/docs

.PHONY: docs-serve
docs-serve: docs-tools ## Serve the site of the documentation at http://localhost:5173, and show changes of the pages at once. Needs npm.
	$(VITEPRESS) dev docs

VITEPRESS := node $(DOCS)/node_modules/vitepress/bin/vitepress.js

$(DOCS)/.stamp: docs/.vitepress/package.json docs/.vitepress/package-lock.json
	@command -v npm >/dev/null || { echo "The site of the documentation needs npm (Node.js 20)." >&2; exit 1; }
	@mkdir -p $(DOCS) && cp docs/.vitepress/package*.json $(DOCS) && cd $(DOCS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

HTMX_VERSION     := 2.0.11
HTMX_SSE_VERSION := 2.2.4
ASSETS           := broker/console/assets/vendor

.PHONY: console-assets
console-assets: ## Download the scripts of the console from npm in their pinned versions. Needs npm. Leaves no diff when no version has changed.
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && \
	for package in htmx.org@$(HTMX_VERSION) htmx-ext-sse@$(HTMX_SSE_VERSION); do \
		(cd "$$work" && mkdir "$${package%@*}" && tar -xzf "$$(npm pack --silent "$$package")" -C "$${package%@*}" --strip-components 1) || exit 1; \
	done && \
	cp "$$work/htmx.org/dist/htmx.min.js" $(ASSETS)/htmx.min.js && cp "$$work/htmx.org/LICENSE" $(ASSETS)/htmx.LICENSE && \
	cp "$$work/htmx-ext-sse/dist/sse.min.js" $(ASSETS)/htmx-ext-sse.min.js && cp "$$work/htmx-ext-sse/LICENSE" $(ASSETS)/htmx-ext-sse.LICENSE

.PHONY: bench
bench: postgres garden ## Measure the broker and write docs/operator/benchmarks.md (a quarter of an hour).
	go test -run '^$$' -bench . -benchmem ./process/...
	go test -run '^$$' -bench . -timeout 0 -v ./test/bench -args -out $(CURDIR)/docs/operator/benchmarks.md

LARGE ?= 1000000

.PHONY: bench-large
bench-large: postgres ## Measure a broker with LARGE (1000000) instances and five times as many operations, and write docs/operator/benchmarks-large.md (half an hour, 60 GB of temporary files). Run `sysctl vm.nr_hugepages=2300` first; docs/operator/sizing.md says why.
	GOGC=400 go test -run '^$$' -bench . -timeout 0 -v ./test/bench -args -large $(LARGE) -out $(CURDIR)/docs/operator/benchmarks-large.md

.PHONY: release release-snapshot
release: $(GORELEASER) ## Publish the release of the current tag: archives, checksums, SBOMs, images. Needs Docker and Syft.
	$(GORELEASER) release --clean

# Without a remote, GoReleaser does not read the commit, so versions and times would be wrong.
release-snapshot: $(GORELEASER) ## Build archives and checksums of the current commit into dist/, without publishing. Writes SBOMs if Syft is installed.
	@git remote | grep -q . || { echo "GoReleaser needs a Git remote: run this in a clone" >&2; exit 1; }
	$(GORELEASER) release --clean --snapshot --skip=docker$(if $(shell command -v syft),,$(comma)sbom)

$(GORELEASER):
	GOBIN=$(CURDIR)/.bin go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

.PHONY: clean
clean: ## Remove build results and the sandbox's data.
	rm -rf bin .bin dist .sandbox
