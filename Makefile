# Every target is one line of `make help`. Only Go is needed for build, run and
# vet; what the tests need beyond that is installed by test/setup.sh.

GO      ?= go
BIN     := bin/forebay
FUZZTIME ?= 60s
# Without it the image codecs look for shared libraries, and the binary is no static one.
TAGS    := nodynamic

.DEFAULT_GOAL := help
.PHONY: help build run setup check test e2e console fuzz deploytest soak bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the static binary bin/forebay
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '-s -w' -o $(BIN) ./cmd/forebay

run: build ## build, start a server on an embedded queue and watch sample traffic go through it
	$(BIN) demo

setup: ## install what the tests need (Debian packages, Node modules)
	bash test/setup.sh

check: ## gofmt, vet and the race-enabled tests; no end-to-end suite
	bash test/run.sh check

test: ## everything: setup, check, bounded fuzzing, the end-to-end suite
	bash test/run.sh all

e2e: build ## the end-to-end suite only: the real binary, PostgreSQL and the SDKs
	bash test/run.sh e2e

console: ## build the console's pages into console/dist (needs Node; the result is committed)
	bash test/setup.sh
	npm --prefix console run build

fuzz: ## fuzz each decoder for FUZZTIME (60s)
	FUZZTIME=$(FUZZTIME) bash test/run.sh fuzz

deploytest: ## deploy, update and roll back on three real hosts under load (root, Debian)
	bash test/deploy/run.sh

soak: ## load each engine for SOAK (1h in all) while what it stands on is broken; tamper with SQS for SOAKTIME s (600)
	bash test/run.sh soak

bench: build ## compare with bare baselines in one run; prints ratios, writes nothing
	$(GO) run ./bench/run
	$(GO) run ./bench/sink

clean: ## remove what the targets above built
	rm -rf bin test/e2e/node_modules console/node_modules test/console/node_modules
