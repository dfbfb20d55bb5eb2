# Microbatch to Milliseconds. Every target sets up what it needs; the second time that takes no time.
#   make lab     the series in JupyterLab          make test    every test
#   make race    the headline in this terminal     make check   linter, types and the fast tests
#   make bench   all figures, about 55 minutes     make doctor  what this machine has and lacks
#   make fresh LESSON=03  that lesson anew         make clean   remove all of this but my_lessons
#   make setup   only set up                       make lock    renew requirements.lock

# A Python that pyspark supports and that the lock has wheels for; PYTHON=… chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NEED_PYTHON = test -n "$(PYTHON)" || { echo "Sorry: this needs a Python from 3.11 to 3.14, and none was found."; \
	echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12"; exit 1; }
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyrefly check --summary=none

.PHONY: race lab fresh test check bench doctor setup lock clean help
.DEFAULT_GOAL := help

help:
	@sed -n '2,6s/^# *//p' Makefile

race: setup
	@$(BIN)/python -m helpers race $(ARGS)

bench: setup
	@$(BIN)/python -m helpers bench $(ARGS)

lab: setup
	@$(BIN)/python -m helpers lab $(ARGS)

fresh: $(READY)
	@$(BIN)/python -m helpers fresh $(LESSON)

check: $(READY)
	@$(LINT)
	@$(BIN)/python -m pytest -q -m "not (engine or docker or commands or browser)"

test: setup
	@$(LINT)
	@$(BIN)/python -m pytest $(ARGS)
	@LAB_PACE=quick $(BIN)/python -m pytest --nbval --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg \
		--nbval-cell-timeout=600 --nbval-kernel-startup-timeout=120 notebooks

# The doctor must be able to say what is missing, so it needs the packages but no jars.
doctor: $(READY)
	@$(BIN)/python -m helpers doctor

setup: $(READY)
	@$(BIN)/python -m helpers jars

$(READY): requirements.lock
	@$(NEED_PYTHON)
	@echo "setup: Python packages into $(VENV) (1.2 GB on disk, a minute or two, once)"
	@"$(PYTHON)" -m venv --clear $(VENV) || { echo "Sorry: '$(PYTHON) -m venv' failed. On Debian and Ubuntu:" \
		"apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock || { \
		echo "Sorry: the Python packages could not be installed. The first run needs a network;" \
		"run the same command again once you are online."; exit 1; }
	@touch $@

# All packages at one moment, for every Python and system at once. What still fits requirements.txt stays as it is;
# ARGS=--upgrade takes the newest of everything else.
lock:
	@$(NEED_PYTHON)
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && "$(PYTHON)" -m venv "$$scratch" && \
		"$$scratch/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.8 && \
		"$$scratch/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(ARGS) \
			--output-file requirements.lock requirements.txt

clean:
	rm -rf $(VENV) .cache build .pytest_cache .ruff_cache
	find helpers tests notebooks -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
