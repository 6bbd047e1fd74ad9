"""The house: no circles, an instant import, every chapter under one stem; pyproject.toml has its wall."""

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import linformer_from_scratch

PACKAGE = Path(linformer_from_scratch.__file__).parent
NAME = PACKAGE.name
ROOMS = {"efficient_attention": "efficient", "start_here": "course/start_here"}  # stems that live elsewhere


@pytest.mark.parametrize("of_rooms", [False, True], ids=["modules", "rooms"])
def test_there_are_no_circles(of_rooms):
    graph = grimp.build_graph(NAME)
    assert len(graph.modules) > 100
    if of_rooms:
        graph.remove_module(f"{NAME}.benchmark.__main__")  # a door, as in pyproject.toml
        for room in graph.find_children(NAME):
            graph.squash_module(room)
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module) - {module}:
            circle = graph.find_shortest_chain(importer=imported, imported=module)
            assert circle is None, " imports ".join([module, *(circle or ())])


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
    for chapter in sorted((root / "chapters").glob("[0-9][0-9]_*.ipynb")):
        stem = chapter.stem[3:]
        room = ROOMS.get(stem, stem)
        assert (PACKAGE / f"{room}.py").exists() or (PACKAGE / room).is_dir()
        assert (root / "tests" / f"test_{stem}.py").exists()
        assert (root / "solutions" / chapter.name).exists()
        assert (PACKAGE / "exercises" / f"{stem}.py").exists()
        assert chapter.stem == "00_start_here" or (root / "chapters/scenes" / f"{chapter.stem}.py").exists()


def test_beside_the_chapters_stands_only_what_they_share():
    stems = {chapter.stem[3:] for chapter in (PACKAGE.parent / "chapters").glob("[0-9][0-9]_*.ipynb")}
    shared = {"__init__", "heads", "encoder", "diagrams", "fitting", "plots"}
    assert {path.stem for path in PACKAGE.glob("*.py")} - stems == shared
