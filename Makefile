# The commands of this project, the same for people and for CI.
#
#   make demo           reproduce the Gaussian experiment into build/gaussian
#   make test           set up, lint, check types, run every test and doctest
#   make test-oldest    the tests on the lowest supported versions (Python 3.11)
#   make test-newest    the tests on the highest supported versions (Python 3.13)
#   make bench          speed, as ratios to limits and to other libraries, into build/speed; QUICK=1: small; ONLY=limits: one group
#   make native         compile and install the fast sums over pairs (tests do so where there is a C++ compiler)
#   make lint | format | types | mutants | wheel | clean
#
# PYTHON=/path/to/python picks the interpreter, JOBS=n the number of test processes.

.PHONY: demo bench native test tests test-oldest test-newest lint format types mutants wheel clean python
.DEFAULT_GOAL := test

BIN  := .venv/bin
PIP  := pip -qq --retries 10 --disable-pip-version-check
JOBS ?= 2

# $(call first,CONDITION,NAMES): the first interpreter that runs (a name on the path may be a shim with nothing behind
# it), meets the condition and can make environments. pyenv answers for one version only, hence the look into its folder.
first = $(shell for p in $(2); do \
	"$$p" -c "import sys, ensurepip, venv; sys.exit(not $(1))" 2>/dev/null && echo "$$p" && break; done)
pyenv = $(wildcard $(PYENV_ROOT)/versions/$(1).*/bin/python)

supported     := sys.version_info >= (3, 11)
names         := python3.13 python3.12 python3.11 python3
named         := $(if $(PYTHON),"$(PYTHON)")
python         = $(call first,$(supported),$(or $(named),$(names)))
python-oldest  = $(call first,sys.version.startswith('3.11.'),$(named) python3.11 $(call pyenv,3.11))
python-newest  = $(call first,sys.version.startswith('3.13.'),$(named) python3.13 $(call pyenv,3.13))

# The C++ compiler: the one that is named, or the first that runs. Empty where there is none.
compiler = $(shell for c in $(if $(filter-out default,$(origin CXX)),"$(CXX)",c++ g++ clang++); do \
	$$c --version >/dev/null 2>&1 && echo "$$c" && break; done)

# $(call environment,INTERPRETER,CONSTRAINTS,EXTRA): a fresh environment, stamped only once all of it is installed.
# Of the two variables every pip reads the first, and recent ones read the second for the build backend.
define environment
	@echo "Installing into $(@D) with $(1); the first time takes a few minutes"
	@rm -rf $(@D) && "$(1)" -m venv $(@D)
	@PIP_CONSTRAINT=$(2) PIP_BUILD_CONSTRAINT=$(2) $(@D)/bin/python -m $(PIP) install -e '.[$(3)]'
	@touch $@
endef

native: $(if $(compiler),.venv/native)
	$(if $(compiler),,@echo "No C++ compiler (c++, g++, clang++) was found; install one (Debian: apt-get install g++; macOS:" \
		"xcode-select --install), or name it: make native CXX=/path/to/compiler" >&2; exit 1)

demo: .venv/ready
	$(BIN)/polystein reproduce gaussian --out build/gaussian

bench: .venv-bench/ready $(if $(compiler),.venv-bench/native)
	.venv-bench/bin/python -m benchmarks.speed $(if $(QUICK),--quick) $(if $(ONLY),--only "$(ONLY)") --out build/speed

test: lint types tests

tests: .venv/ready $(if $(compiler),.venv/native)
	$(if $(compiler),,@echo "No C++ compiler was found: laws of the compiled sums are skipped; for them, see make native")
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term

test-oldest: only := 3.11
test-newest: only := 3.13
test-oldest test-newest: test-%:
	@$(if $(python-$*),$(MAKE) --no-print-directory .venv-$*/ready && .venv-$*/bin/python -m pytest -n $(JOBS),\
		echo "Skipped $@: no Python $(only) was found; install it, or name it: make $@ PYTHON=/path/to/python$(only)")

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/ready
	$(BIN)/basedpyright

mutants: .venv/ready
	$(BIN)/python tests/mutants.py

wheel: .venv/ready
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m $(PIP) wheel --no-deps -w dist .

python: # says which interpreter the environment is made with
	@test -n "$(python)" && echo "$(python)" || { \
		echo "No Python >= 3.11 that has venv and ensurepip was found, having tried: $(or $(PYTHON),$(names))." >&2; \
		echo "Install one (Debian: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python" >&2; \
		exit 1; }

.venv/ready: pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory python >/dev/null
	$(call environment,$(python),constraints.txt,dev)

.venv/native .venv-bench/native: %/native: %/ready $(wildcard native/*.* native/*/*.*)
	@echo "Compiling native/"
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt CXX="$(compiler)" \
		$(@D)/bin/python -m $(PIP) install --no-deps --force-reinstall ./native
	@touch $@

.venv-oldest/ready: pyproject.toml constraints-oldest.txt
	$(call environment,$(python-oldest),constraints-oldest.txt,test)

.venv-newest/ready: pyproject.toml constraints.txt
	$(call environment,$(python-newest),constraints.txt,test)

.venv-bench/ready: pyproject.toml constraints-bench.txt
	$(call environment,$(python),constraints-bench.txt,bench)

clean:
	rm -rf .venv .venv-oldest .venv-newest .venv-bench build dist .coverage .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
