"""Browser tests need a Chromium; reports are shown after the tests.

A test marked `browser` gets the fixture `browser`, or `chromium`, its path. Where there is none it is
skipped, and one line at the end says so; with BROWSER_TESTS=required it fails.
A test marked `cuda` needs a GPU.

record_property("report", "a line") shows a measurement that no test judges.
"""

import os

import pytest
import torch
from chromium import find_chromium
from lab import open_browser

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


@pytest.fixture(scope="session")
def chromium():
    return find_chromium()


@pytest.fixture(scope="module")
def browser(chromium):
    """A running one, for all pages of a file."""
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
