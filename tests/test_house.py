"""The house: arrows point down, there are no circles, and importing the package is instant."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "linformer_from_scratch"
NAME = PACKAGE.name
# Whatever is not named here is the ground floor, which imports nothing of ours but the cellar.
FLOORS = {
    "course.checks": -1,
    "course.defaults": -1,
    "diagrams": 1,
    "course.sources": 1,
    "course.glossary": 1,
    "course.ledger": 1,
    "course.results": 2,
    "course.experiments": 6,
    "course.start_here": 2,
    "heads": 1,
    "projections": 1,
    "data": 1,
    "multihead": 2,
    "linformer": 2,
    "efficient": 2,
    "training": 2,
    "efficient.family": 3,  # Linformer is one of the family
    "training.recipes": 3,  # a command knows every model; the trainer is given one
    "training.records": 3,
    "training.__main__": 3,
    "distributed": 4,
    "pretrained": 3,
    "fitting": 2,
    "limits": 5,
    "benchmark.layers": 3,  # timing is given a callable; what is compared knows every layer
    "benchmark.records": 3,
    "benchmark.suite": 4,
    "benchmark.check": 4,
    "benchmark.__main__": 4,
    "widgets": 6,
    "exercises": 6,
}

ROOMS = {"efficient_attention": "efficient", "start_here": "course/start_here"}  # stems that live elsewhere


def room(module):
    return module.removeprefix(NAME).lstrip(".").split(".")[0]


def floor(module):
    """Of the module, or of the innermost room it is in that has one."""
    name = module.removeprefix(NAME).lstrip(".")
    while name and name not in FLOORS:
        name = name.rpartition(".")[0]
    return FLOORS.get(name, 0)


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path):
    """Our own modules that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]  # from package import module
            names = {name if is_module(name) else node.module for name in inside}
        yield from (name for name in names if name.split(".")[0] == NAME)


def is_module(name):
    place = PACKAGE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or place.is_dir()


def test_arrows_point_down():
    modules = sorted(PACKAGE.rglob("*.py"))
    assert len(modules) > 5
    for path in modules:
        module = module_of(path)
        for target in imports(path):
            below = floor(target) < floor(module)
            beside = floor(target) == floor(module) and room(target) == room(module)  # modules of one package
            assert below or beside, f"{module} imports {target}, which is not below it"


def test_there_are_no_circles():
    graph = {module_of(path): set(imports(path)) for path in PACKAGE.rglob("*.py")}

    def visit(module, trail):
        assert module not in trail, " imports ".join([*trail, module])
        for target in graph.get(module, ()):
            visit(target, [*trail, module])

    for module in graph:
        visit(module, [])


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, {NAME}; print([m for m in ('torch', 'numpy', 'matplotlib') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8"
        ).stdout.strip()
        == "[]"
    )


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
    assert {path.stem for path in PACKAGE.glob("*.py")} - stems == {
        "__init__",
        "heads",
        "encoder",
        "diagrams",
        "fitting",
        "plots",
    }
