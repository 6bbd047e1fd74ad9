"""The README is true: its tree, its chapter table, its commands and its picture."""

import base64
import re
import subprocess
from pathlib import Path

import nbformat
import pytest

from linformer_from_scratch.course.decision import worth_it_on_the_cpu

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_IN_THE_TREE = {".gitignore", ".gitattributes"}


def tree():
    """The paths that the README's tree names."""
    block = README.split("## Tree")[1].split("```")[1].strip("\n")
    paths, folder = [], ""
    for line in block.splitlines():
        name = line.split()[0]
        if line.startswith("  "):
            paths.append(folder + name)
        else:
            paths.append(name)
            folder = name
    return paths


def tracked():
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    return listing.stdout.splitlines()


def test_everything_in_the_tree_exists():
    assert len(tree()) > 20
    assert [path for path in tree() if not (ROOT / path).exists()] == []


def test_everything_at_the_top_and_in_the_package_stands_in_the_tree():
    top = {path.split("/")[0] + ("/" if "/" in path else "") for path in tracked()} - NOT_IN_THE_TREE
    package = {
        "linformer_from_scratch/" + path.split("/")[1] + ("/" if path.count("/") > 1 else "")
        for path in tracked()
        if path.startswith("linformer_from_scratch/") and not path.endswith("__init__.py")
    }
    assert top | package | {"linformer_from_scratch/exercises/", "linformer_from_scratch/widgets/"} <= set(
        tree()
    )


def test_the_chapter_table_agrees_with_the_chapters():
    rows = re.findall(r"^\| (\d\d) \| (.+?) \| (.+?) \| (\d+) \|$", README, re.MULTILINE)
    assert [number for number, *_ in rows] == [f"{i:02}" for i in range(13)]
    for number, name, question, minutes in rows:
        found = list((ROOT / "chapters").glob(f"{number}_*.ipynb"))
        assert bool(found) != name.endswith("(to come)"), f"chapter {number}"
        if found:
            title = nbformat.read(found[0], as_version=4).cells[0].source
            label, link = re.fullmatch(r"\[(.+)\]\((.+)\)", name).groups()
            assert ROOT / link == found[0]
            assert title.startswith(f"# {number} · {label}\n")
            assert f"**{question}** · {minutes} minutes" in title


def test_it_says_from_which_n_linformer_was_worth_it():
    assert f"from about {worth_it_on_the_cpu():,} tokens on" in README


def test_chapter_00_shows_the_same_table():
    start = (ROOT / "chapters/00_start_here.ipynb").read_text(encoding="utf-8")
    ours = re.findall(r"^\| (\d\d) \| .+ \| (\d+) \|$", README, re.MULTILINE)
    assert re.findall(r"\| (\d\d) \| [^|]+ \| [^|]+ \| (\d+) \|", start) == ours


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("https://arxiv.org/") or (ROOT / link).exists(), link


def test_every_target_of_the_makefile_is_named():
    targets = re.findall(r"^([a-z-]+):.*?## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    line = next(line for line in README.splitlines() if line.startswith("Makefile "))
    assert sorted(line.split()[1:]) == sorted(targets)


def test_windows_runs_the_tests_that_make_runs():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    suite = re.search(r"^SUITE := (.+)$", makefile, re.MULTILINE)[1].split()
    commands = README.split("| `make test` |")[1].splitlines()[0]
    windows = re.search(r"Scripts\\python -m pytest (.+?)`", commands)[1].split()
    assert [option for option in suite if option != "-q"] == windows


def test_the_files_that_begin_first_are_there(request):
    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert [name for name in conftest.LONG if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["wall", "map"])
def test_a_picture_is_the_one_that_chapter_00_draws(name):
    assert f"](chapters/{name}.png)" in README
    cells = nbformat.read(ROOT / "chapters/00_start_here.ipynb", as_version=4).cells
    (cell,) = [cell for cell in cells if f"picture-{name}" in cell.metadata.get("tags", [])]
    drawn = base64.b64decode(cell.outputs[0].data["image/png"])
    assert drawn == (ROOT / f"chapters/{name}.png").read_bytes()
