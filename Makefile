# rddp: make help lists what can be made.
GO        ?= go
FUZZTIME  ?= 20s
SEEDS     ?= 10000
INVALIDATIONS ?= 100000
BENCH     ?= .
PROVETIME ?= 60s
PROVESEED ?= 1
DURATION  ?= 2m
LINK      ?= both
export CGO_ENABLED ?= 0

.PHONY: help build test race lint fmt fuzz bench scoreboard conformance demo interop hostile netns soak worlds mutants prove clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build everything, and cross-compile for the other systems
	$(GO) build -o bin/ ./cmd/... ./examples/...
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...
	cd bench && $(GO) build -o ../bin/ ./...

test: ## run all tests
	$(GO) test ./...
	cd bench && $(GO) test ./...

race: ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...
	cd bench && CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run make fmt"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) build -o bin/ honnef.co/go/tools/cmd/staticcheck
	cd bench && $(GO) vet ./... && ../bin/staticcheck ./...

fmt: ## format the sources
	gofmt -w .

fuzz: ## run each fuzz target for FUZZTIME (20s), two at a time; what they covered (FUZZ=flags of fuzz/run)
	@GO="$(GO)" $(GO) run ./fuzz/run -time $(FUZZTIME) $(FUZZ)

bench: ## run the benchmarks (BENCH=regexp)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

scoreboard: ## measure ourselves beside iperf3, libusrsctp and pion/sctp (root, Debian; SCOREBOARD=flags)
	@bench/install.sh
	@$(GO) build -o bin/ ./cmd/ddpbench
	@cd bench && $(GO) build -o ../bin/ ./scoreboard
	@$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o bin/usrsctp-end bench/scoreboard/usrsctp/end.c -lusrsctp
	@bin/scoreboard $(SCOREBOARD)

conformance: ## what the RFCs demand and which of it the tests hold; brings the table in README.md up to date
	@$(GO) run ./conformance/cmd/conformance -update

demo: ## ping by send, write and read, then measure: both ends on this machine, no set-up
	@$(GO) build -o bin/ ./cmd/...
	@bin/ddpping --self --op all -c 3 -i 0.2
	@bin/ddpbench write --self -a -n 300

netns: ## run the tools over every link between two network namespaces (root, iproute2, nftables, tshark)
	test/netns.sh

interop: netns ## what independent programs make of our packets: tshark under the tools and of each message, libusrsctp
	GO="$(GO)" test/wireshark.sh
	test/interop/run.sh

worlds: ## SEEDS (10000) simulated worlds; INVALIDATIONS (100000) under a peer's writes and the race detector: minutes
	$(GO) test ./internal/world -run '^TestSeeds$$' -count=1 -timeout 2h -v -seeds=$(SEEDS)
	CGO_ENABLED=1 $(GO) test -race ./rdma -run '^TestNothingChangesAfterInvalidate$$' -count=1 -timeout 2h -v -invalidations=$(INVALIDATIONS)

soak: ## DURATION (2m) of faults and kills between two network namespaces, every message accounted for (root; LINK=raw|udp|both SOAK=flags)
	@$(GO) build -o bin/ ./test/soak
	@bin/soak -link $(LINK) -duration $(DURATION) $(SOAK)

hostile: ## attack servers over real links, measure what it costs them and their honest client (root; HOSTILE=flags, -6 for IPv6)
	@$(GO) build -o bin/hostile ./test/hostile
	@bin/hostile $(HOSTILE)

prove: ## let worlds live in virtual time for PROVETIME (60s), from seed PROVESEED (1) on
	@$(GO) run ./test/prove -time $(PROVETIME) -seed $(PROVESEED)

mutants: ## make small faults one by one and tell which ones no test notices (root; MUTANTS=flags)
	@$(GO) run ./test/mutants $(MUTANTS)

clean: ## remove what was built
	rm -rf bin
