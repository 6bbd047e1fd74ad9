"""The house: no circles, an instant import, every chapter under one stem; pyproject.toml has the rings."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest
from lectures import chapters

import linformer_from_scratch

PACKAGE = Path(linformer_from_scratch.__file__).parent
NAME = PACKAGE.name
ROOMS = {"efficient_attention": "efficient", "start_here": "course/start_here"}  # stems that live elsewhere


def test_there_are_no_circles():
    graph = grimp.build_graph(NAME, "lab")
    assert len(graph.modules) > 100
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            circle = graph.find_shortest_chain(importer=imported, imported=module)
            assert circle is None, " imports ".join([module, *(circle or ())])


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        (f"import {NAME}.plots", f"{NAME}.course.plots"),
        (f"from {NAME} import diagrams", f"{NAME}.course.diagrams"),
        (f"from {NAME}.exercises.engine import checking", f"{NAME}.course.exercises.engine"),
        (f"from {NAME}.widgets.rank_slider import RankSlider", f"{NAME}.course.widgets.rank_slider"),
        (f"from {NAME}.limits import capstone", f"{NAME}.pretrained.capstone"),
        (f"from {NAME}.training import ranks", f"{NAME}.common.ranks"),
        (f"import {NAME}.course.checks", f"{NAME}.common.checks"),
        (f"from {NAME}.experiments.results import read_rows", "lab, beside the package; recorded rows"),
    ],
)
def test_what_has_moved_says_where_it_is(statement, place):
    assert place.startswith("lab") or find_spec(place)
    with pytest.raises(ModuleNotFoundError, match=f"has moved to {re.escape(place)}"):
        exec(statement)
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{NAME}.nothing'"):
        exec(f"import {NAME}.nothing")


def test_the_doors_lead_to_what_is_fixed():
    from linformer_from_scratch.course import exercises as room
    from linformer_from_scratch.course import widgets as shown
    from linformer_from_scratch.exercises import check, hint, progress, quiz, reset, yours
    from linformer_from_scratch.widgets import AttentionExplorer, ProjectionExplorer, RankSlider

    for each in (check, hint, progress, quiz, reset, yours):
        assert each is getattr(room, each.__name__)
    for each in (AttentionExplorer, ProjectionExplorer, RankSlider):
        assert each is getattr(shown, each.__name__)


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, {NAME}; print([m for m in ('torch', 'numpy', 'matplotlib') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert run.stdout.strip() == "[]"


def test_importing_the_trainer_loads_only_what_it_needs():
    code = f"import sys, {NAME}.training; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    loaded = run.stdout.split()
    assert {"tokenizers", f"{NAME}.benchmark", f"{NAME}.distributed"}.isdisjoint(loaded)
    assert 10 < sum(module.startswith(NAME) for module in loaded) <= 21


def test_the_package_gives_its_layers_when_asked():
    for name in linformer_from_scratch.__all__:
        assert getattr(linformer_from_scratch, name) is not None
    assert linformer_from_scratch.LinformerAttention.__module__ == f"{NAME}.linformer"
    assert not hasattr(linformer_from_scratch, "no_such_layer")


def test_every_room_of_a_chapter_has_its_stem():
    """Chapter, module, test, solution and scene of a chapter share one stem."""
    root = PACKAGE.parent
    for chapter in chapters():
        stem = chapter.stem[3:]
        room = ROOMS.get(stem, stem)
        assert (PACKAGE / f"{room}.py").exists() or (PACKAGE / room).is_dir()
        assert (root / "tests" / f"test_{stem}.py").exists()
        assert (root / "solutions" / chapter.name).exists()
        assert (PACKAGE / "course" / "exercises" / f"{stem}.py").exists()
        assert chapter.stem == "00_start_here" or (root / "chapters/scenes" / f"{chapter.stem}.py").exists()


def test_beside_the_chapters_stands_only_what_they_share():
    stems = {chapter.stem[3:] for chapter in chapters()}
    shared = {"__init__", "heads", "encoder", "fitting", "converters", "examine"}
    assert {path.stem for path in PACKAGE.glob("*.py")} - stems == shared


def test_the_page_lists_every_public_name_and_all_that_it_lists_imports():
    page = (PACKAGE.parent / "tools/book/pages/use.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## Public names\n+```python\n(.+?)```", page, re.DOTALL)
    exec(block, {})
    listed = [name.name for line in ast.parse(block).body if line.module == NAME for name in line.names]
    assert {*listed, "__version__"} == {*linformer_from_scratch.__all__}
