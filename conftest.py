"""What holds for every test and every notebook run as one: own progress, a share of the cores, no network."""

import gc
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

OFFLINE = Path(__file__).parent / "tests" / "offline"  # its sitecustomize.py refuses foreign addresses
NUMBERS = itertools.count()
# Longest first, then the other notebooks: with --no-loadscope-reorder a worker takes whole files.
LONG = (
    *("chapters/08_training.ipynb", "chapters/12_limits.ipynb", "tests/test_last_bits.py"),
    *("tests/test_my_linformer.py", "tests/test_book.py", "tests/test_classroom.py", "tests/test_slides.py"),
    *("tests/test_lab.py", "tests/test_widgets_live.py", "tests/test_setup.py"),
    "tests/test_right_answers.py",
)


def pytest_configure(config):
    """Set what every kernel and subprocess inherits."""
    config.progress_folder = tempfile.mkdtemp(prefix="progress-")
    if workers := config.getoption("numprocesses", default=None):
        # Each its share of the cores: threads that outnumber the cores wait for each other.
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, os.cpu_count() // workers)))
    os.environ["IPYTHONDIR"] = config.progress_folder  # without what its owner has kernels run at their start
    os.environ["PYTHONUTF8"] = "1"  # what it prints is read as UTF-8, on Windows too
    os.environ["PYTHONPATH"] = os.pathsep.join([str(OFFLINE), *filter(None, [os.environ.get("PYTHONPATH")])])


def pytest_unconfigure(config):
    """Leave nothing behind."""
    shutil.rmtree(config.progress_folder)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    """The longest files first, within a file as written; slow: cells so tagged, evidence and solutions."""
    for item in items:
        tags = getattr(item, "cell", {}).get("metadata", {}).get("tags", ())
        if "slow" in tags or item.path.parent.name in ("evidence", "solutions"):
            item.add_marker("slow")
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(f"{item.path.parent.name}/{item.path.name}", len(LONG)))


def pytest_collection_finish():
    """Leave what is there by now, and stays, out of the searches for garbage: each took up to a second."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Begin with no progress. A notebook's kernel starts after this, in the setup of its first cell."""
    folder = Path(item.config.progress_folder, str(next(NUMBERS)))
    folder.mkdir()
    os.environ["LINFORMER_PROGRESS"] = str(folder / "progress.json")
