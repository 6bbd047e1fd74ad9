"""Browser tests need a Chromium; reports are shown after the tests.

A test marked `browser` gets the fixture `browser`, or `chromium`, its path. Where there is none it is
skipped, and one line at the end says so; with BROWSER_TESTS=required it fails.
A test marked `cuda` needs a GPU.

record_property("report", "a line") shows a measurement that no test judges.
"""

import importlib.util
import os
import runpy
import sys

import pytest
import torch
from chromium import find_chromium

from linformer_from_scratch.pretrained import tokens, weights

NO_CHROMIUM = "no Chromium found: set CHROMIUM to its path, or install it (Debian: apt install chromium)"


def pytest_runtest_setup(item):
    if item.get_closest_marker("browser") and find_chromium() is None:
        stop = pytest.fail if os.environ.get("BROWSER_TESTS") == "required" else pytest.skip
        stop(NO_CHROMIUM)
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of the test's own, on every system."""
    folder = tmp_path / "home"
    folder.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(folder))
    return folder


@pytest.fixture
def without_the_package(monkeypatch):
    """The pretrained model is not installed."""
    module, found = importlib.util, importlib.util.find_spec
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == weights.PACKAGE else found(name))
    for cached in (tokens.vocabulary, tokens.tokenizer, weights.model_weights):
        cached.cache_clear()


@pytest.fixture
def as_module(monkeypatch, capsys):
    """Run a module as python -m does, but in this process: its exit's message, and what it printed."""

    def run(module, *words):
        monkeypatch.setattr(sys, "argv", [module, *map(str, words)])
        monkeypatch.delitem(sys.modules, f"{module}.__main__", raising=False)  # if another test imported it
        code = None
        try:
            runpy.run_module(module, run_name="__main__")
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def chromium():
    return find_chromium()


@pytest.fixture(scope="module")
def browser(chromium):
    """A running one, for all pages of a file."""
    from jupyter_lab import open_browser  # the library's tests do without it

    with open_browser(chromium) as running:
        yield running


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats
    skipped = [report for report in reports.get("skipped", []) if "browser" in report.keywords]
    if skipped:
        terminalreporter.write_line(f"BROWSER TESTS SKIPPED ({len(skipped)}): {NO_CHROMIUM}", yellow=True)
    for report in reports.get("passed", []):
        for name, line in report.user_properties:
            if name == "report":
                terminalreporter.write_line(line)
