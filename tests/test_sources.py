"""sources.py: what a file was made from, as far as our own code goes."""

import pytest

from linformer_from_scratch.experiments.sources import changed, code, sources

FILES = {
    "tools/run.py": "import torch\n\nimport beside\nfrom linformer_from_scratch.top import go\n",
    "tools/beside.py": "A = 1\n",
    "linformer_from_scratch/__init__.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from linformer_from_scratch import other\n"
    ),
    "linformer_from_scratch/top.py": "def go():\n  from linformer_from_scratch import low\n  return low.B\n",
    "linformer_from_scratch/low.py": "from linformer_from_scratch.room.door import KEY\n\nB = KEY\n",
    "linformer_from_scratch/room/__init__.py": "LIGHT = 1\n",
    "linformer_from_scratch/room/door.py": "KEY = 2\n",
    "linformer_from_scratch/other.py": "C = 3\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def rewrite(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_sources_are_the_file_and_all_of_ours_that_it_reaches(root):
    found = sources(root / "tools/run.py", root)
    assert set(found) == set(FILES) - {"linformer_from_scratch/other.py"}
    assert next(iter(found)) == "tools/run.py"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("tools/run.py", "go", "go as stop"),
        ("tools/beside.py", "1", "2"),
        ("linformer_from_scratch/top.py", "return low.B", "return -low.B"),
        ("linformer_from_scratch/room/door.py", "2", "3"),
        ("linformer_from_scratch/room/__init__.py", "LIGHT = 1", "LIGHT = 0"),
    ],
)
def test_a_change_of_any_of_them_is_named(root, name, before, after):
    recorded = sources(root / "tools/run.py", root)
    assert changed(recorded, root / "tools/run.py", root) == []
    rewrite(root / name, before, after)
    assert changed(recorded, root / "tools/run.py", root) == [name]


def test_files_that_came_and_went_are_named(root):
    recorded = sources(root / "tools/run.py", root)
    rewrite(root / "linformer_from_scratch/low.py", "room.door import KEY", "other import C as KEY")
    assert changed(recorded, root / "tools/run.py", root) == [
        "linformer_from_scratch/low.py",
        "linformer_from_scratch/other.py",
        "linformer_from_scratch/room/__init__.py",
        "linformer_from_scratch/room/door.py",
    ]


def test_what_is_not_imported_does_not_count(root):
    recorded = sources(root / "tools/run.py", root)
    rewrite(root / "linformer_from_scratch/other.py", "3", "4")
    assert changed(recorded, root / "tools/run.py", root) == []


def test_words_do_not_count():
    text = (
        '"""Module."""\n\nA = "# none"  # a comment\n\n\ndef f():\n    """Two\n    lines."""\n    return A\n'
    )
    assert code(text) == 'A = "# none"\ndef f():\n    return A'
    assert code(text.replace("a comment", "another").replace("Two", "Three")) == code(text)
    assert code(text.replace("return A", "return -A")) != code(text)
