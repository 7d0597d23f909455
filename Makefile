# Development tasks. `make` without a target lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

SWIFT ?= swift
KAFKA_VERSION := 4.1.1
SECONDS ?= 300
# CI sets this to turn warnings into errors.
SWIFT_FLAGS ?=
# Where make install puts the program.
PREFIX ?= /usr/local
DESTDIR ?=
FORMATTED := Package.swift Sources Samples Tests Benchmarks Chaos Examples Fuzzing

.PHONY: help deps deps-test build release install uninstall packages test test-all demo dev worker format lint bench contact-sheet sanitize fuzz chaos conformance clients generated-clients compatible-urls reference-images worst-input detector face-precision chart check docc site commands docker-test monitoring kafka clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages to build and run Halcyon and its unit tests, under 400 MB; on other systems, list them
	@scripts/deps

deps-test: deps ## install the Debian packages of all other checks too: browser, Prometheus, ffmpeg, Go, Java, Node.js (2 GB)
	@scripts/deps test

build: deps ## build everything in debug mode
	$(SWIFT) build --build-tests $(SWIFT_FLAGS)

release: deps ## build the halcyon executable in release mode
	$(SWIFT) build -c release --product halcyon

install: deps ## install the program, completions, manual pages and systemd units; PREFIX=/usr/local DESTDIR=
	$(SWIFT) build -c release --product halcyon --static-swift-stdlib --scratch-path .build/static
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install

uninstall: ## remove what make install has installed; PREFIX=/usr/local DESTDIR=
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install --uninstall

packages: ## build a tarball and a .deb for Debian 12 and 13 in .build/packages and try them in chroots; needs root
	@scripts/release --build .build/packages

test: deps ## run the tests that need no JVM, browser or injected fault, and print the slowest ones
	@scripts/test

test-all: deps-test release detector ## run all tests and the checks of chart, monitoring and documented commands; needs KAFKA_HOME (see make kafka)
	@scripts/test-all

demo: release ## resize sample photographs on an embedded cluster; results in demo/
	@scripts/demo

dev: release ## run a local cluster with a dashboard until Ctrl-C; ARGS="--log-level debug"
	@scripts/dev $(ARGS)

worker: release ## add a worker to the cluster of make dev; run it in another terminal
	@scripts/worker $(ARGS)

format: ## format the Swift code in place
	$(SWIFT) format -i --configuration .swift-format -r $(FORMATTED)

lint: ## check the format and doc comments of the Swift code
	$(SWIFT) format lint --strict --configuration .swift-format -r $(FORMATTED)

bench: deps-test ## run the benchmarks and print the cost of rendering and jobs as ratios
	@Benchmarks/run

contact-sheet: deps-test release ## render the pictures of the documentation to docs/images
	@scripts/contact-sheet
	@scripts/pictures

sanitize: deps-test ## run the tests under the address and thread sanitizers
	@scripts/sanitize

fuzz: deps ## fuzz jobs with images and the metadata of committed offsets for SECONDS (300)
	@scripts/fuzz $(SECONDS)

chaos: deps-test ## inject faults into a cluster and check the guarantees (docs/chaos.md); ARGS="run --seed 1 --seconds 300"
	@Chaos/run $(ARGS)

conformance: release ## test the gateway against its OpenAPI document; ARGS="EXAMPLES SEED"
	@scripts/conformance $(ARGS)

clients: deps-test release ## build, install and check the client packages against a cluster (docs/clients.md); ARGS="python"
	@scripts/clients $(ARGS)

detector: deps-test ## build the detector of faces on OpenCV in .build/detector, and fetch its model (docs/detectors.md)
	@$(MAKE) --no-print-directory -C Detectors/OpenCV

face-precision: release detector ## measure detection and gravities on pictures with faces (docs/detectors.md)
	@scripts/face-precision

reference-images: deps-test release ## compare composition, color and trimming with Pillow and numpy (docs/processors.md); ARGS="text"
	@scripts/reference-images $(ARGS)

worst-input: deps-test release ## render the largest permitted inputs with each operation; ARGS="text"
	@scripts/worst-input $(ARGS)

compatible-urls: deps-test release ## compare images under URLs of imgproxy, thumbor and imagor with Pillow (docs/compatible-urls.md); ARGS="thumbor"
	@scripts/compatible-urls $(ARGS)

generated-clients: deps-test release ## generate clients from the OpenAPI document and let them submit and render
	@scripts/generated-clients

chart: release ## lint and render the Helm chart and validate it against the schemas of Kubernetes (docs/deployment.md); ARGS="test_workers"
	@scripts/chart $(ARGS)

docker-test: ## build and test the Docker image and the Compose file with the local Docker engine (docs/deployment.md); ARGS="test_image"
	@scripts/docker-test $(ARGS)

check: ## check documents, scripts and workflows, without a build; ARGS="test_links"
	@scripts/check $(ARGS)

docc: deps ## build the DocC pages of HalcyonKit and HalcyonModel in .build/docc; warnings are errors
	@scripts/docc

site: deps ## build the documentation site in .build/site; broken links are errors; SERVE=1 serves it
	@scripts/site

commands: deps-test release ## run the commands in README.md and the documentation against a cluster (Tests/Commands)
	@scripts/commands

monitoring: deps-test release ## check metrics, alerts and the dashboard against a cluster under load; needs KAFKA_HOME (docs/metrics.md)
	@scripts/monitoring $(ARGS)

kafka: ## download an official release of Apache Kafka to .build/kafka for the tests and verify its checksum
	@scripts/fetch-kafka $(KAFKA_VERSION)

clean: ## remove build products and demo/
	rm -rf .build* demo
