# Halcyon's commands. `make` alone explains them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

SWIFT ?= swift
KAFKA_VERSION := 4.1.1
SECONDS ?= 300
# CI makes warnings errors here.
SWIFT_FLAGS ?=
FORMATTED := Package.swift Sources Samples Tests Benchmarks Chaos Examples Fuzzing

.PHONY: help deps build release test demo dev worker format lint bench contact-sheet sanitize fuzz chaos conformance chart check docc commands docker-test monitoring kafka clean

help: ## explain the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what the system lacks (Debian's packages; elsewhere it says what is needed)
	@scripts/deps

build: deps ## build everything for debugging
	$(SWIFT) build --build-tests $(SWIFT_FLAGS)

release: deps ## build the halcyon executable as it is shipped
	$(SWIFT) build -c release --product halcyon

test: deps ## run every test; those on Apache Kafka need KAFKA_HOME (see make kafka)
	@scripts/test

demo: release ## size real photographs on an embedded cluster; results in demo/
	@scripts/demo

dev: release ## run a whole cluster on loopback until Ctrl-C, with a dashboard; ARGS="--log-level debug"
	@scripts/dev $(ARGS)

worker: release ## add a worker to the cluster of make dev, from another terminal
	@scripts/worker $(ARGS)

format: ## format the Swift code in place
	$(SWIFT) format -i --configuration .swift-format -r $(FORMATTED)

lint: ## check format and documentation of the Swift code
	$(SWIFT) format lint --strict --configuration .swift-format -r $(FORMATTED)

bench: deps ## print what rendering and jobs cost, as ratios from one run
	@Benchmarks/run

contact-sheet: deps ## draw what every processor does into docs/images/processors.webp
	@scripts/contact-sheet

sanitize: deps ## run the tests under the address and the thread sanitizer
	@scripts/sanitize

fuzz: deps ## fuzz jobs with files, and the metadata of committed offsets, for SECONDS (300)
	@scripts/fuzz $(SECONDS)

chaos: deps ## do workers harm and look whether they keep their promises (docs/chaos.md); ARGS="run --seed 1 --seconds 300"
	@Chaos/run $(ARGS)

conformance: release ## hold the gateway to its OpenAPI document; ARGS="EXAMPLES SEED"
	@scripts/conformance $(ARGS)

chart: release ## check the Helm chart: lint, render, hold to Kubernetes' schemas (docs/deployment.md); ARGS="test_workers"
	@scripts/chart $(ARGS)

docker-test: ## build the Docker image and try it and Compose with the engine here (docs/deployment.md); ARGS="test_image"
	@scripts/docker-test $(ARGS)

check: ## check documents, scripts and workflows: what is no Swift and needs no build; ARGS="test_links"
	@scripts/check $(ARGS)

docc: deps ## build the DocC pages of HalcyonKit and HalcyonModel into .build/docc; warnings are errors
	@scripts/docc

commands: release ## run the commands of README.md and the book against a cluster (Tests/Commands)
	@scripts/commands

monitoring: release ## check metrics, alerts and the dashboard against a cluster under load; needs KAFKA_HOME as tests do (docs/metrics.md)
	@scripts/monitoring $(ARGS)

kafka: ## fetch Apache Kafka's official release for the tests into .build/kafka, checksum verified
	@scripts/fetch-kafka $(KAFKA_VERSION)

clean: ## remove what was built
	rm -rf .build* demo
