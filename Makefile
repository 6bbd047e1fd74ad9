# On Windows, tools/book/pages/elsewhere.md names the commands behind these targets; with make and Git Bash they run there too (untested).
PYTHON ?= python3
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(PROGRAMS)
SUITE := --nbval --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg \
	-q -n 2 --dist loadfile --no-loadscope-reorder --durations 10 chapters solutions tests
TSC := npx --yes --prefer-offline --package typescript@7.0.2 tsc
TYPES := if $(TSC) --version >/dev/null 2>&1; then $(TSC) -p tools/javascript; else echo "JavaScript not checked: npm is missing, or cannot get TypeScript"; fi
# Tests that need nothing of the course, the lab or the tools around them; recorded rows are only files.
LIBRARY = $(shell grep -LE "from_scratch(\.| import )(exercises|widgets)|from_scratch\.course(\.| import )[^r]|^ *(from|import) ($(AROUND))" tests/test_*.py)
AROUND := PIL|bs4|check_jsonschema|datasets|deck_fixture|jupyter_lab|lab|lectures|onnx|transformers|yaml
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache && $(BIN)/python tools/lint_repo.py && { $(TYPES); }
# Lint beside the tests: what it says comes last, and either fails the target.
define TESTS
@mkdir -p build
@{ $(LINT); } >build/lint.log 2>&1 & $(BIN)/python -m pytest $(1) $(SUITE); tests=$$?; \
	wait $$!; lint=$$?; cat build/lint.log; exit $$((tests | lint))
endef

# Nothing leads a Python out of .venv: as in tools/course.py.
unexport $(filter PYTHON%,$(.VARIABLES)) __PYVENV_LAUNCHER__ VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help course test test-all test-newest test-floor lint slides book class scenes experiments benchmark benchmark-gpu refresh wheel test-wheel python

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

course: python ## set up once, then open JupyterLab on chapter 00
	@$(PYTHON) tools/course.py install
	@$(PYTHON) tools/course.py open

test: python ## set up, lint, unit tests and every notebook without its slow cells: about five minutes
	@$(PYTHON) tools/course.py install --with test
	$(call TESTS,-m "not slow and not browser")

test-all: python ## everything: slow cells and tests, the browser, book, decks, JupyterLab, wheel, set-up
	@$(PYTHON) tools/course.py install --with test
	$(call TESTS)

test-newest: python ## all tests and notebooks with the newest versions of everything, in build/newest
	@$(PYTHON) tools/course.py install --with test --newest
	@build/newest/$(PROGRAMS)/python -m pytest $(SUITE)

test-floor: python ## the library's tests, without the course, with the oldest torch that it allows, in build/floor
	@$(PYTHON) tools/course.py install --floor
	@build/floor/$(PROGRAMS)/python -m pytest -q -n 2 --dist loadfile $(LIBRARY)

lint: python ## ruff, notebooks included, the types of the package, and of its JavaScript where there is npm
	@$(PYTHON) tools/course.py install --with test
	@$(LINT)

slides: python ## decks and handouts into build/slides
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python tools/slides.py $(ONLY)

book: python ## every chapter as a page, with search, solutions, API, decks, into build/book
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python tools/make_book.py

class: python ## a student's folder without solutions, and a teacher's archive with them, into build/class
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python tools/classroom.py

scenes: python ## render the animations whose source has changed
	@$(PYTHON) tools/course.py install --with scenes
	@$(BIN)/python tools/scenes.py $(ONLY)

experiments: python ## list the recorded experiments; ONLY=12_recall measures what is missing of one
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python -m lab $(ONLY)

benchmark: python ## measure what chapter 10 shows on this CPU, a quarter of an hour; goes on where it stopped
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python -m linformer_from_scratch.benchmark --device cpu --out build/benchmark_cpu.json --resume

benchmark-gpu: python ## the same on a GPU, longer texts too, in eight minutes; goes on where it stopped
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python -m linformer_from_scratch.benchmark --device cuda --minutes 8 --out build/benchmark_gpu.json --resume

refresh: python ## run the notebooks again and keep their outputs; ONLY=01 for one chapter
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python tools/refresh.py $(ONLY)

wheel: python ## the package as a file that pip installs, into build/wheel
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python tools/wheel.py

test-wheel: python ## the same, installed in build/wheel-env, and every chapter, or ONLY="01 04", alone in an empty folder
	@$(PYTHON) tools/course.py install --with test
	@$(BIN)/python tools/wheel.py --try $(ONLY)

python:
	@command -v $(PYTHON) >/dev/null || { echo "Set-up: there is no $(PYTHON); install Python 3.11 or newer, then for example: make course PYTHON=python3.12."; exit 1; }
