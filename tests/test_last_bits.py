"""The last bits of a machine decide nothing: not what a check says, and not what a compared cell prints.

Other processors, other numbers of threads, and rounding put in on purpose (`rounding.py`), each in a process
of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from right_answers import RIGHT
from rounding import Rounding

from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.checking import exam_seeds, judge, sentence_of

ROOT = Path(__file__).parents[1]
SEEDS = (1, 2)
MACHINES = {
    "the plainest kernels": ("default", "COMPATIBLE", "SSE41", 1),
    "AVX2 on two threads": ("avx2", "AVX2", "AVX2", 2),
    "AVX-512 on four threads": ("avx512", "AVX512", "AVX512_CORE", 4),
}
VARIABLES = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS")
DECISIONS = "reference_passes or own_sentence or right_answers_of or nearly_right or in_an_exam"
COMPARED = ("--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval_sanitize.cfg")
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def on(machine):
    """The environment that makes this machine compute as another, if it can."""
    environment = dict(zip(VARIABLES, map(str, MACHINES[machine]), strict=True))
    environment["MKL_DYNAMIC"] = "FALSE"  # or it takes no more threads than there are cores
    show = "import torch; print(torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())"
    capability, threads = run(environment, "-c", show).stdout.split()
    if capability.lower() != environment["ATEN_CPU_CAPABILITY"]:
        pytest.skip(f"this processor has {capability} at most")
    assert threads == environment["OMP_NUM_THREADS"]
    return environment


def run(environment, *words):
    """What another Python does, which rounds otherwise where it's asked to."""
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment, command = {**os.environ, "PYTHONPATH": path, **environment}, [sys.executable, *words]
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)


def failures(environment, *words):
    """What pytest finds wrong there; empty where all passes."""
    pytest_there = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short")
    done = run(environment, *pytest_there, *words)
    return done.stdout + done.stderr if done.returncode else ""


# Checks


QUICK = ("1.4", "6.1", "13.3")
EVERY = [pytest.param(id, marks=() if id in QUICK else pytest.mark.slow) for id in EXERCISES]


def elsewhere(function, machine):
    """The same function, rounded otherwise than the reference is on this machine."""

    def attempt(*arguments):
        machine.seed += 1
        try:
            return function(*arguments)
        finally:
            machine.seed -= 1

    return function if isinstance(function, type) else attempt


@pytest.mark.parametrize("id", EVERY)
def test_rounding_decides_no_check(id):
    exercise = EXERCISES[id]
    with Rounding(1) as machine:
        for answer in (exercise.reference, *RIGHT[id]):
            result = judge(exercise, elsewhere(answer, machine), exam_seeds(1))
            assert result.message == f"{id} passed", answer
        for mistake in exercise.mistakes:
            assert judge(exercise, elsewhere(mistake, machine)).message == sentence_of(mistake)


CHECKS = ("tests/test_exercises.py", "tests/test_right_answers.py", "-k", DECISIONS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_decides_nothing_in_any_exercise(seed):
    assert not failures({"ROUNDING": str(seed)}, *CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_no_machine_decides_what_an_exercise_accepts(machine):
    assert not failures(on(machine), *CHECKS)


# Printed cells


def test_a_cell_that_prints_rounding_is_found(tmp_path):
    made = "import torch\ntorch.manual_seed(0)\nx = torch.randn(50, 50)\nlargest = (x @ x).max().item()"
    sources = (made, "print(largest)", "print(f'{largest:.2f}')")
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(notebook).execute()
    nbformat.write(notebook, path := tmp_path / "three_cells.ipynb")
    found = failures({"ROUNDING": "1"}, *COMPARED, f"--rootdir={tmp_path}", str(path))
    assert "Cell 1" in found and "1 failed, 2 passed" in found


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
@pytest.mark.parametrize("machine", ["rounded", "the plainest kernels"])
def test_compared_cells_print_the_same_on_every_machine(chapter, machine):
    environment = {"ROUNDING": "1"} if machine == "rounded" else on(machine)
    assert not failures(environment, "-m", "not slow", *COMPARED, str(chapter))
