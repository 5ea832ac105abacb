# make help lists the targets.
VERSION ?= 0.1.0-dev
PREFIX ?= /usr/local
PROGRAMS = AutoAgentProject autoagent-manager autoagent-specialist autoagent-reporter autoagent-quota autoagent-bridge
STEPS = $(wildcard core/*/step_test.go)
STEPPED = $(patsubst %/step_test.go,./%,$(STEPS))
FOLDERS = cmd core bridge systemd prompts
GO ?= go
export CGO_ENABLED = 0

.PHONY: help build demo test packages steps tools check race full kill torture systemd pages fuzz bench lint install uninstall clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' Makefile | expand -t 14

build: ## build all programs, static, into bin/
	$(GO) build -trimpath -ldflags '-X example.com/AutoAgentProject/cmd/internal/app.version=$(VERSION)' -o bin/ ./cmd/...

tools: ## bring what the demo and the tests need (bubblewrap, the pinned agent program)
	@.ci/tools

demo: tools build ## run a small real mission whose model is played from a script
	@bin/AutoAgentProject demo

test: tools check ## run everything
	@$(MAKE) --no-print-directory -j2 packages steps

packages: # most tests wait more than they work, so three packages go at once; check has vetted
	$(GO) test -vet=off -timeout 14m -p 3 -parallel 6 ./...

steps: # the tests of files with the tag testonly: they kill a process, or let it fail, at each of its durable steps
	$(GO) test -vet=off -timeout 10m -tags testonly -run "^($$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(t .*/\1/p' $(STEPS) | paste -sd '|'))$$" $(STEPPED)

check: ## formatting, vet, both builds
	@out=$$(gofmt -l $(FOLDERS)); [ -z "$$out" ] || { echo "gofmt: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags testonly $(STEPPED) ./cmd/internal/app

race: tools ## run everything but whole missions with the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./core/... ./bridge

full: tools check ## run everything in its long form (more than an hour)
	AUTOAGENT_FULL=1 $(GO) test -vet=off -timeout 180m -parallel 6 ./...
	$(MAKE) --no-print-directory steps

kill: tools ## kill ticks at each of their steps (many minutes)
	AUTOAGENT_FULL=1 $(GO) test ./cmd/internal/e2e -run TestKilledAtEachStep -timeout 60m -v
	AUTOAGENT_FULL=1 $(GO) test ./cmd/internal/app -run 'TestHandoffKilled|TestHandoffWrites' -timeout 60m -v

systemd: tools ## missions of systemd through power cuts, faults and long waits (about half an hour)
	AUTOAGENT_FULL=1 $(GO) test ./cmd/internal/e2e -run TestSystemd -timeout 60m -v

torture: tools ## kill and fail ticks between any two system calls, 1,000 times by seed, and print what came of it (an hour and more)
	AUTOAGENT_FULL=1 AUTOAGENT_TORTURE=1000 $(GO) test ./cmd/internal/e2e -run 'TestTorture|TestPick|TestCrashLoop|TestBlockedWaits' -timeout 300m -v
	AUTOAGENT_FULL=1 $(GO) test ./core/specialist -run 'TestThirty|TestInterventions|TestExhausted|TestSleeping|TestBusy' -timeout 20m -v

walls: tools ## try every way out of the walls with every engine, and write down what came of it
	AUTOAGENT_FULL=1 AUTOAGENT_MATRIX=$(CURDIR)/docs/isolation.md $(GO) test ./cmd/internal/e2e -run 'TestEscape|TestWalls' -timeout 20m -v

pages: tools ## look at every page of the dashboard in Chromium, and keep pictures in bin/pages
	AUTOAGENT_FULL=1 AUTOAGENT_SCREENSHOTS=$(CURDIR)/bin/pages $(GO) test ./bridge -run TestBrowser -timeout 30m -v

fuzz: ## run each fuzz target for a minute
	@for p in $$($(GO) list ./core/...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		echo "$$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime 1m || exit 1; done; done

bench: tools ## measure, as ratios against a baseline in the same run
	$(GO) test -run '^$$' -bench . -benchtime 200x ./core/...
	$(GO) test -run '^$$' -bench . -benchtime 20x ./bridge
	$(GO) test -run '^$$' -bench . -benchtime 1x ./cmd/internal/e2e

lint: ## staticcheck
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

install: build ## install the programs below PREFIX (DESTDIR is put before it)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(addprefix bin/,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/bin

uninstall: ## remove them and the hourly reconcile; refused while a mission has units, and missions stay
	[ -n "$(DESTDIR)" ] || [ ! -x $(PREFIX)/bin/AutoAgentProject ] || $(PREFIX)/bin/AutoAgentProject reconcile --uninstall
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(PROGRAMS))
	@for p in $(PROGRAMS); do [ ! -e $(DESTDIR)$(PREFIX)/bin/$$p ] || { echo "$$p is still there"; exit 1; }; done

clean: ## remove what was built here
	rm -rf bin
