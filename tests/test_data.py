"""data.py: the shipped text is what was shipped, and every bad file gets one sentence that names it."""

import os
import tempfile
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from linformer_from_scratch import data
from linformer_from_scratch.data import documents, read_text, shipped_text


def test_the_shipped_text_is_english_in_documents():
    assert len(shipped_text()) > 400_000
    assert len(documents()) > 70 and all(body.strip() for body in documents().values())
    assert documents()["assert"].startswith('The "assert" statement')


def test_the_shipped_text_is_that_of_cpython():
    """Versions of CPython reword a topic now and then; most stay word for word."""
    same = [title for title in documents() if documents()[title] == topics.get(title, "").strip() + "\n"]
    assert len(same) > len(documents()) / 3


def test_a_changed_text_is_refused_with_both_sums(tmp_path, monkeypatch):
    copy = tmp_path / data.SHIPPED.name
    copy.write_text(shipped_text() + "one more line\n")
    copy.with_suffix(".json").write_bytes(data.SHIPPED.with_suffix(".json").read_bytes())
    monkeypatch.setattr(data, "SHIPPED", copy)
    with pytest.raises(ValueError, match=r"python_reference.txt has SHA-256 \w{64}, expected \w{64}"):
        shipped_text.__wrapped__()


def test_a_file_of_your_own_keeps_every_character(tmp_path):
    (tmp_path / "mine.txt").write_bytes("\ufeffnaïve\r\nStraße 東京\n".encode())
    assert read_text(tmp_path / "mine.txt") == "naïve\nStraße 東京\n"


def test_a_folder_is_read_in_order_and_to_the_bottom(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.md").write_text("two")
    (tmp_path / "a.TXT").write_text("one")
    (tmp_path / "picture.png").write_bytes(b"\0")
    assert read_text(tmp_path) == "one\ntwo"


def test_hidden_folders_are_left_out_and_empty_files_do_no_harm(tmp_path):
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "copy.md").write_text("one")
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "one.md").write_text("one")
    assert read_text(tmp_path) == "\none"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("music.txt", b"abc\0def", r"music.txt is binary \(byte 3 is zero\)"),
        (
            "latin.txt",
            "naïve".encode("latin-1"),
            r"latin.txt is not UTF-8 \(byte 2 is 0xef\); save it as UTF-8",
        ),
        ("mixed.txt", b"\xef\xbb\xbfna\xefve", r"mixed.txt is not UTF-8 \(byte 5 is 0xef\)"),
    ],
)
def test_a_bad_file_is_named_alone_and_in_a_folder(tmp_path, name, content, sentence):
    (tmp_path / "good.txt").write_text("good")
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(ValueError, match=sentence):
            read_text(path)


def test_what_is_missing_or_empty_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere.txt"):
        read_text(tmp_path / "nowhere.txt")
    with pytest.raises(ValueError, match="holds no text file"):
        read_text(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(ValueError, match=r"empty.txt is empty, expected text"):
        read_text(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match=rf"{tmp_path.name} is empty, expected text"):
        read_text(tmp_path)


@pytest.fixture
def locked_folder(request):
    """A folder in which one file or folder is locked; root could read it, so root becomes nobody."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no permissions to take away")
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "inner").mkdir()
        (folder / "inner/locked.txt").write_text("secret")
        (folder / "good.txt").write_text("good")
        (folder / request.param).chmod(0)
        os.seteuid(user or 65534)
        try:
            yield folder, request.param
        finally:
            os.seteuid(user)
            (folder / "inner").chmod(0o755)


@pytest.mark.parametrize("locked_folder", ["inner/locked.txt", "inner"], indirect=True)
def test_what_is_locked_is_named_and_its_folder_is_not_read_in_part(locked_folder):
    folder, locked = locked_folder
    for path in (folder / "inner/locked.txt", folder):
        with pytest.raises(PermissionError, match=rf"{locked}.* may not be read"):
            read_text(path)
