# What each target does stands beside it; `make` alone lists them.
export CGO_ENABLED = 0
GO ?= go
COVER = cover.out
PEERS = .peers
# Vet is in lint: within go test it would look through all dependencies. With more memory the compiler takes less time, and
# so do the tests, up to the limit: a command that a test calls would set that of a small run for all tests of the process.
# Without debugging information the linker takes a third less.
TEST = GOGC=400 GOMEMLIMIT=4GiB $(GO) test -vet=off -ldflags '-s -w'
# Packages that hold assembly, or choose it, and those that are tested with each instruction set.
ASM = ./cpu ./cpu/conv ./cpu/gemm ./cpu/isa ./cpu/norm ./cpu/tile ./cpu/vec ./data ./data/images ./data/images/jpeg
# Tests that compare all paths by themselves, or none: those of names, folders and files of data sets run no assembly.
ONCE = TestVecTwins|TestSelectedTwins|TestNormLoops|TestReal|TestSynthetic|TestDirichlet|TestBorrowedArenas|TestFootprint|TestBF16OnTiles|TestParallelAllocatesNothing|TestLoad|TestBetaIsBeta|TestFormsOfUnicode|TestUsualTrees|TestAnyTree

.PHONY: help run test test-binaries test-default test-paths test-long test-asm test-arm64 test-arm64-asm qemu soak test-cu race lint fuzz bench peers card generate cross release vulncheck wheel module cover clean size

help:
	@grep -E '^[a-z-]+:.*#' $(MAKEFILE_LIST) | sed 's/:.*# /\t/'

run: # train the default job
	$(GO) run ./cmd/fspda train

test: # all tests, in minutes on two cores
	@$(MAKE) --no-print-directory -j2 test-default test-paths

# Once and first, so that the two targets above do not compile the same packages at the same time.
test-binaries:
	mkdir -p bin/paths && GOGC=400 $(GO) test -vet=off -ldflags '-s -w' -c -o bin/paths/ $(ASM)

# The packages that take longest come first, and one more than there are cores at a time, since their tests also wait.
# So do up to eight of one package's tests.
test-default: test-binaries
	$(TEST) -parallel 8 -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) ./train ./cli ./cuda ./...

test-paths: test-binaries # tests of the assembly's other paths: AVX2 where the processor has AVX-512, and Go on amd64
	@set -e; for p in $(ASM); do for off in $$(grep -qsw avx512f /proc/cpuinfo && echo avx512f) avx2; do echo "$$p without $$off"; \
	  (cd $$p && GODEBUG=cpu.$$off=off $(CURDIR)/bin/paths/$${p##*/}.test -test.timeout 5m -test.skip '$(ONCE)'); \
	done; done

# With the usual garbage collection, since the largest tests would take 13 GB with TEST's.
test-long: # the long ones too
	FSPDA_LONG=1 GOMEMLIMIT=4GiB $(GO) test -vet=off -timeout 150m -count 1 ./train ./cli ./cuda ./...
	$(GO) test -timeout 15m -count 1 -skip '$(ONCE)' -tags fspda_noasm $(ASM)
	cd deploy/schema && $(GO) test -count 1 ./...
	@$(MAKE) --no-print-directory test-asm

soak: # runs of processes under faults for SOAK (10m); prints its seed, which SEED draws again
	$(GO) test -vet=off -c -o bin/cli.test ./cli
	cd cli && FSPDA_SOAK=$${SOAK:-10m} FSPDA_SOAK_SEED=$(SEED) ../bin/cli.test -test.run '^TestSoak$$' -test.parallel 16 -test.timeout 0

test-cu: # the build tag cu, with a C compiler and NVIDIA's headers of CUDA 12 (FSPDA_CUDA_PATH names where)
	FSPDA_LONG=1 $(GO) test -count 1 -v -run 'TestTagCU|TestHeader|TestLibcuda' ./cuda/driver

race: # all tests under the race detector, which needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...

test-asm: # the generators of assembly, which are a module of their own: their output, and what it holds
	cd tools/asm && $(GO) test ./...

# Tests of packages dist and data that compare assembly with Go.
TWINS = Twins|TestTransform|TestLattice|TestResample

# NEON under emulation: all bits, no times. ARM64 runs go test on a program for arm64, from any processor.
ARM64 = GOARCH=arm64 $(TEST) -exec '$(if $(filter arm64,$(shell $(GO) env GOHOSTARCH)),,qemu-aarch64)' -timeout 60m

test-arm64: qemu # the packages that hold assembly, the networks and the result hashes on arm64, emulated (a quarter of an hour)
	$(ARM64) $(ASM) ./cpu/attention ./cpu/embed
	$(ARM64) -run '$(TWINS)' ./dist ./dist/strata
	$(ARM64) -run 'TestResultHashes' .
	$(ARM64) -run 'Golden|Bits|TestSA' ./model ./train/algo
	FSPDA_LONG=1 $(GO) test -vet=off -count 1 -run TestNothingIsFused .
	GODEBUG=cpu.asimd=off $(ARM64) ./cpu/isa ./cpu/vec ./cpu/norm

test-arm64-asm: qemu # the kernels of arm64 against their definitions in Go, emulated (two minutes)
	$(ARM64) ./cpu/tile ./cpu/vec ./cpu/norm
	$(ARM64) -run '$(TWINS)' ./dist ./dist/strata ./data

qemu: # the emulator of user programs, where the machine has another processor
	@test "$$($(GO) env GOHOSTARCH)" = arm64 || command -v qemu-aarch64 >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq qemu-user; } >/dev/null || \
	  { echo "qemu-aarch64 is missing: install qemu-user"; exit 1; }

lint: # formatting, vet, staticcheck, names and lengths: golangci-lint, pinned in tools/lint/go.mod
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run ./...
	cd tools/asm && $(GO) tool -modfile=../lint/go.mod golangci-lint run ./...

fuzz: # every fuzz test for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-10s} $$pkg; done; done

bench: # benchmarks of the kernels, then of a training step, then kernels against their limits
	$(GO) test -run '^$$' -bench . ./internal/rng ./cpu/... ./data ./dist
	$(GO) run ./cmd/fspda bench step
	$(GO) run ./cmd/fspda bench kernels

peers: # the same work in NumPy, PyTorch and JAX beside ours; installs them (5 GB) in .peers at first
	test -x $(PEERS)/bin/python || python3 -m venv $(PEERS)
	$(PEERS)/bin/pip install -q --no-deps -r bench/peers/requirements.txt
	$(GO) build -o $(PEERS)/fspda ./cmd/fspda
	$(PEERS)/bin/python bench/peers/compare.py $(PEERS)/fspda
	test ! -e /proc/driver/nvidia/version || $(PEERS)/bin/pip install -q --no-deps -r bench/peers/requirements-gpu.txt
	test ! -e /proc/driver/nvidia/version || $(PEERS)/fspda bench card --python $(PEERS)/bin/python --out $(PEERS)/card
	FSPDA_PEERS=$(abspath $(PEERS))/bin/python $(GO) test -count 1 -v -run 'TestTorchvision|TestHuggingFace|TestTransformers|TestONNXRuntime|TestAutocast' ./cli/weights ./cuda
	FSPDA_PEERS=$(abspath $(PEERS))/bin/python PATH=$(abspath $(PEERS))/bin:$$PATH $(GO) test -count 1 -v -run 'TestPython|TestWheel' ./cli
	FSPDA_PEERS=$(abspath $(PEERS))/bin/python $(GO) test -count 1 -v -run TestTokenizers ./data/text/bpe
	PATH=$(abspath $(PEERS))/bin:$$PATH $(GO) test -run '^$$' -bench Call ./model/external
	test -x $(PEERS)/trackers/bin/python || python3 -m venv $(PEERS)/trackers
	$(PEERS)/trackers/bin/pip install -q -r bench/peers/requirements-trackers.txt
	FSPDA_PEERS=$(abspath $(PEERS))/trackers/bin/python $(GO) test -count 1 -v -run TestTrackers ./cli
	test -z "$(PICTURES)" || $(PEERS)/bin/python bench/peers/load.py $(PEERS)/fspda $(PICTURES)

card: # one file for a machine with a GPU: sh bin/card.sh OUT [part...], with compiled kernels if NVRTC is found; CHOICES and CUBINS name files of an earlier run
	rm -rf bin/card && mkdir -p bin/card
	GOOS=linux GOARCH=amd64 $(GO) build -trimpath -ldflags '-s -w' -o bin/card/fspda ./cmd/fspda
	test -z "$(CHOICES)" || cp "$(CHOICES)" bin/card/choices.jsonl
	-GOCACHE=$$($(GO) env GOCACHE) XDG_CACHE_HOME=$(CURDIR)/bin/card/cache $(GO) test -vet=off -count 1 -run 'TestCompile$$' ./cuda/kernels
	test ! -d bin/card/cache || tar -C bin/card/cache -czf bin/card/cubins.tar.gz fspda/cubin
	rm -rf bin/card/cache
	test -z "$(CUBINS)" || cp "$(CUBINS)" bin/card/cubins.tar.gz
	cp bench/bundle/card.sh bin/card.sh
	tar -C bin/card -cf - . | gzip -9 >> bin/card.sh
	@ls -l bin/card.sh

size: # lines of Go by folder beside their budget, without tests and generated files
	@$(GO) test -vet=off -count 1 -run TestSize -v . | grep lines

generate: # regenerate what is generated; CI wants no difference
	$(GO) generate ./...
	cd examples/quasi-global && $(GO) mod tidy

cross: # build for every system we promise, and without our assembly
	@set -e; for t in linux/amd64 linux/arm64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo "$$t"; GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./cmd/fspda; done
	@set -e; for s in linux darwin windows; do GOOS=$$s GOARCH=arm64 $(GO) vet $(ASM); done
	GOOS=windows GOARCH=amd64 $(GO) vet ./cli # whose tests start processes
	$(GO) build -tags fspda_noasm $(ASM)

release: # stripped programs, container files, checksums, bill of materials and licences, in .release
	rm -rf .release
	deploy/release.sh .release

vulncheck: # known vulnerabilities in the modules that the program calls; needs the network, for govulncheck and its database
	@db=$${GOVULNDB:-https://vuln.go.dev}; curl -fsS -m 30 -o /dev/null $$db/index/db.json || \
		{ echo "make vulncheck: the database $$db cannot be reached, and nothing was checked; GOVULNDB names a mirror" >&2; exit 1; }; \
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest -db $$db ./...

wheel: # wheels of the Python package with the program for each system, in .wheels; needs python3
	rm -rf .wheels
	python3 deploy/wheel.py .wheels

module: # the same code as module MODULE, in .module, built and tested: make module MODULE=example.org/you/fspda
	rm -rf .module
	deploy/module.sh $(MODULE) .module

cover: # statement coverage per package
	$(GO) test -coverprofile $(COVER) ./... && $(GO) tool cover -func $(COVER) | tail -1

clean:
	rm -rf bin $(COVER)
