"""What holds for every test and every notebook run as one: own progress, a share of the cores, no network."""

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

OFFLINE = Path(__file__).parent / "tests" / "offline"  # its sitecustomize.py refuses foreign addresses
NUMBERS = itertools.count()


def pytest_configure(config):
    """Set what every kernel and subprocess inherits."""
    config.progress_folder = tempfile.mkdtemp(prefix="progress-")
    if workers := config.getoption("numprocesses", default=None):
        # Each its share of the cores: threads that outnumber the cores wait for each other.
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, os.cpu_count() // workers)))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(OFFLINE), *filter(None, [os.environ.get("PYTHONPATH")])])


def pytest_unconfigure(config):
    """Leave nothing behind."""
    shutil.rmtree(config.progress_folder)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Begin with no progress. A notebook's kernel starts after this, in the setup of its first cell."""
    os.environ["LINFORMER_PROGRESS"] = f"{item.config.progress_folder}/{next(NUMBERS)}.json"
