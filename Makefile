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
# The packages of the modules that others import and install. bench has a module for itself.
ALL       := ./... ./cmd/... ./metrics/...
export CGO_ENABLED ?= 0

.PHONY: help build check test full arches simple race lint fmt tidy fuzz bench scoreboard wan conformance api compat demo aim interop interop-linux hostile siege netns soak worlds mutants proofs prove browser clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# cross SYSTEM,PROCESSOR,FLAGS compiles everything, and links the tools.
define cross
	GOOS=$(1) GOARCH=$(2) $(GO) list -export $(3) $(ALL) >/dev/null
	GOOS=$(1) GOARCH=$(2) $(GO) build $(3) -o /dev/null ./cmd/...
endef
fast := -gcflags='all=-N -l'

build: ## build everything, and cross-compile for the other systems
	$(GO) build -o bin/ ./cmd/... ./examples/... ./bench/...
	$(call cross,linux,arm64,) # as make arches compiles it
	$(call cross,darwin,arm64,$(fast))
	$(call cross,windows,amd64,$(fast))

check: ## a working day's check, under a minute: build, gofmt, vet, staticcheck, the tests with -short
	$(GO) build $(ALL)
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run make fmt"; exit 1; }
	$(GO) vet $(ALL)
	$(GO) tool staticcheck $(ALL)
	$(GO) test -short $(ALL)

test: ## run all tests, under three minutes (TEST=flags of go test)
	$(GO) test $(TEST) $(ALL) ./bench/...

full: ## what does not fit the gate, for hours (root, Debian): all mutants, long worlds, hosts, soak, other architectures, peers
	$(MAKE) race
	$(MAKE) arches
	$(MAKE) worlds
	$(MAKE) prove PROVETIME=1h
	$(MAKE) fuzz FUZZTIME=10m
	$(MAKE) hostile
	$(MAKE) hostile HOSTILE=-6
	$(MAKE) hostile HOSTILE='--crowd 1000 --crowd-window 10s'
	$(MAKE) siege DURATION=1h
	$(MAKE) soak DURATION=1h
	$(MAKE) soak DURATION=10m LINK=conn
	$(MAKE) mutants
	$(MAKE) mutants SAMPLE=1000
	$(GO) run ./test/locks
	$(MAKE) simple
	$(MAKE) proofs
	$(MAKE) browser
	$(MAKE) interop
	$(MAKE) interop-linux SIW_COUNT=100000
	$(MAKE) compat COMPAT=--full
	$(MAKE) wan WAN=--short

arches: ## the protocol packages' tests on arm64 and on s390x, which is big-endian, under qemu (root, Debian; ARCHES=--short)
	GO="$(GO)" test/arches.sh $(ARCHES)

simple: ## run the tests of sctp with the simple read policy: block, read, handle, send
	RDDP_READ_POLICY=simple $(GO) test ./sctp

# tests of the code itself, and of tools
unraced = -e /test/arch -e /test/mutants -e /test/session
race: ## run all tests under the race detector (needs a C compiler; RACE=--short: those of the product where goroutines run, with -short)
	CGO_ENABLED=1 $(GO) test -race -timeout 30m $(if $(filter --short,$(RACE)),-short -vet=off \
		$$(CGO_ENABLED=0 $(GO) run ./test/goroutines $(ALL) | grep -v $(unraced)),$(ALL) ./bench/...)

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run make fmt"; exit 1; }
	$(GO) vet $(ALL) ./bench/...
	$(GO) tool staticcheck $(ALL) ./bench/...

fmt: ## format the sources
	gofmt -w .

tidy: ## bring go.mod and go.sum of each module up to date
	@for m in . bench compat/free5gc compat/ishidawataru compat/ishidawataru/diameter compat/pion examples/datachannel bench/wan/webrtc test/browser test/interop/pion tools; do (cd $$m && GOWORK=off $(GO) mod tidy) || exit; done
	@cd bench/wan/webrtc && GOWORK=off $(GO) mod tidy -modfile=original.mod
	@for m in metrics cmd; do (cd $$m && \
		$(GO) mod edit -replace github.com/rddp-go/rddp=.. -replace github.com/rddp-go/rddp/metrics=../metrics && \
		GOWORK=off $(GO) mod tidy; status=$$?; \
		$(GO) mod edit -dropreplace github.com/rddp-go/rddp -dropreplace github.com/rddp-go/rddp/metrics; exit $$status) || exit; done

fuzz: ## run each fuzz target for FUZZTIME (20s), two at a time; what they covered (FUZZ=flags of fuzz/run)
	@GO="$(GO)" $(GO) run ./fuzz/run -time $(FUZZTIME) $(FUZZ)

bench: ## run the benchmarks (BENCH=regexp)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(ALL)

scoreboard: ## measure ourselves beside TCP, iperf3, libusrsctp and pion/sctp (root, Debian; SCOREBOARD=flags)
	@bench/install.sh
	@$(GO) build -o bin/ ./cmd/ddpbench
	@$(GO) build -o bin/ ./bench/scoreboard
	@cd compat/ishidawataru/diameter && GOWORK=off $(GO) build -o ../../../bin/diameter-end .
	@$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o bin/usrsctp-end bench/scoreboard/usrsctp/end.c -lusrsctp
	@bin/scoreboard $(SCOREBOARD)

wan: ## measure ourselves beside TCP, QUIC and pion/sctp over long roads that lose packets (root; WAN=flags: --short, --virtual, --tools bin, --webrtc bin, --help)
	@$(GO) build -o bin/ ./cmd/...
	@$(GO) build -o bin/ ./bench/wan
	@cd bench/wan/webrtc && GOWORK=off $(GO) build -o ../../../bin/wan-webrtc-ours . && \
		GOWORK=off $(GO) build -modfile=original.mod -o ../../../bin/wan-webrtc-original .
	@bin/wan $(WAN)

conformance: ## what the RFCs demand and which of it the tests hold; brings the table in test/conformance/README.md up to date
	@$(GO) run ./test/conformance/cmd/conformance -update

api: ## write down what programs can see of the packages that they import, which a test compares
	$(GO) test ./test/arch -run "^TestAliases" -update-aliases
	$(GO) test ./test/arch -run "^TestExportedAPI" -update-api

compat: ## run programs for other SCTP packages on ours, unchanged: go-diameter, pion/webrtc, the packages' own tests (raw as root; COMPAT=--full)
	GO="$(GO)" test/compat.sh $(COMPAT)

demo: ## ping by send, write and read, then measure: both ends on this machine, no set-up
	@$(GO) build -o bin/ ./cmd/...
	@bin/ddpping --self --op all -c 9 -i 0.2
	@bin/ddpbench write --self -a -n 300

netns: ## run the tools over every link between two network namespaces (root, iproute2, nftables, tshark)
	test/netns.sh

interop: netns ## what independent programs make of our packets: tshark under the tools and of each message, libusrsctp, pion/sctp
	GO="$(GO)" test/wireshark.sh
	test/interop/run.sh

interop-linux: ## Linux's own SCTP, and rping over its software iWARP, in guests under qemu (root, Debian; COUNT=messages, SIW_COUNT=rounds over siw, ROWS=regexp)
	GO="$(GO)" test/interop/linux.sh $(ROWS)
	GO="$(GO)" test/interop/siw.sh $(ROWS)

worlds: ## SEEDS (10000) simulated worlds; INVALIDATIONS (100000) under a peer's writes and the race detector: minutes
	$(GO) test ./internal/test/simulation -run '^TestSeeds$$' -count=1 -timeout 2h -v -seeds=$(SEEDS)
	CGO_ENABLED=1 $(GO) test -race ./rdma -run '^TestNothingChangesAfterInvalidate$$' -count=1 -timeout 2h -v -invalidations=$(INVALIDATIONS)

soak: ## DURATION (2m) of faults and kills between two network namespaces, every message accounted for (root; LINK=raw|udp|conn|both SOAK=flags)
	@$(GO) build -o bin/ ./test/soak
	@bin/soak -link $(LINK) -duration $(DURATION) $(SOAK)

hostile: ## attack servers over real links, measure what it costs them and their honest client (root; HOSTILE=flags, -6 for IPv6)
	@$(GO) build -tags holds -o bin/hostile ./test/attack/live
	@bin/hostile $(HOSTILE)

siege: ## attack a host in virtual time for DURATION (2m), from SEED (1) on, and again under the race detector
	$(GO) test ./test/attack -run Hurts -count=1 -timeout 0 -v -duration $(DURATION) -seed $(or $(SEED),1)
	CGO_ENABLED=1 $(GO) test -race ./test/attack -run Hurts -count=1 -timeout 0 -v -duration $(DURATION) -seed $(or $(SEED),1000001)

prove: ## let worlds live in virtual time for PROVETIME (60s), from seed PROVESEED (1) on
	@$(GO) run ./test/random/prove -time $(PROVETIME) -seed $(PROVESEED)

aim: ## attack a release of another SCTP stack that has a known fault, and find it (SEED=, DURATION=)
	@SEED=$(SEED) test/aim.sh

mutants: ## make small faults one by one and tell which no test notices; SAMPLE=n by machine, SEED=s (root; MUTANTS=flags)
	@$(GO) run ./test/mutants $(if $(SAMPLE),-sample $(SAMPLE)) $(if $(SEED),-seed $(SEED)) $(MUTANTS)

proofs: ## show that each fault which proves a row is caught by the test that cites it; SAMPLE=n of them, SEED=s (PROOFS=flags)
	@$(GO) run ./test/mutants -proofs $(if $(SAMPLE),-sample $(SAMPLE)) $(if $(SEED),-seed $(SEED)) $(PROOFS)

browser: ## open the report, the trace and the debug page in Chromium, and data channels to it (root, Debian; SHOTS=directory for screenshots)
	@test/browser/install.sh
	cd test/browser && $(GO) vet ./... && $(GO) test -count=1 -timeout 30m . $(if $(SHOTS),-shots $(abspath $(SHOTS)))

clean: ## remove what was built
	rm -rf bin
