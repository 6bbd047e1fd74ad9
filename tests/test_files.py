"""files.py: a file is there in full or not at all, and one process at a time holds its lock."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linformer_from_scratch.common.files import atomic_write, expanded, locked, make_folder

OLD, NEW = "old ж\n", "new 東京\r\n"


def test_a_tilde_is_the_home_folder_of_whoever_names_it(home):
    assert [*map(expanded, ("~/runs", Path("~/runs"), "~"))] == [home / "runs"] * 2 + [home]
    assert [*map(str, map(expanded, ("runs/~", ".")))] == [str(Path("runs", "~")), "."]


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("file/a/b", "{0}/file is a file, expected a folder"),
        ("link/a", "{0}/link is a link that leads nowhere, expected a folder"),
        ("x" * 300, "{0}/" + "x" * 300 + " cannot be made: File name too long"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="other words, and links need a right")
def test_a_folder_that_cannot_be_made_is_refused_in_one_sentence(tmp_path, name, refusal):
    (tmp_path / "file").write_text(OLD, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(OSError) as refused:
        make_folder(tmp_path / name)
    assert str(refused.value) == refusal.format(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_a_folder_is_made_with_those_above_it_and_may_be_there(tmp_path):
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_is_not_written_over(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder, expected a file$"):
        atomic_write(tmp_path, NEW)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("content", "bytes_"), [(NEW, NEW.encode()), (b"\0\xff\n", b"\0\xff\n"), ("", b"")])
def test_text_and_bytes_are_written_as_they_are(tmp_path, content, bytes_):
    for _ in range(2):
        atomic_write(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == bytes_
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_the_old_file_or_none(tmp_path, monkeypatch, there):
    if there:
        (tmp_path / "file").write_text(OLD, encoding="utf-8")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        atomic_write(tmp_path / "file", NEW)
    assert os.listdir(tmp_path) == ["file"] * there
    assert not there or (tmp_path / "file").read_text(encoding="utf-8") == OLD


def full_disk(_):
    raise OSError(28, "No space left on device")


def test_all_is_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    (tmp_path / "file").write_text(OLD, encoding="utf-8")
    synced = []

    def fsync(number):
        synced.append(os.fstat(number).st_size)
        assert (tmp_path / "file").read_text(encoding="utf-8") == OLD

    monkeypatch.setattr(os, "fsync", fsync)
    atomic_write(tmp_path / "file", NEW)
    assert synced == [len(NEW.encode())]


HOLDER = """
import sys, time
from pathlib import Path
from linformer_from_scratch.common.files import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""
IN_USE = r"^.*file is in use by another process; wait until that has ended$"


def lock(path, wait=0.0):
    with locked(path, wait):
        pass


def test_one_process_holds_the_lock_the_other_gets_one_sentence_and_a_killed_holder_blocks_nobody(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline().strip() == b"locked"
        with pytest.raises(BlockingIOError, match=IN_USE):
            lock(tmp_path / "file")
        holder.kill()
        holder.wait()
    assert os.listdir(tmp_path) == ["file.lock"]
    lock(tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_another_lock_in_the_same_process_waits_as_long_as_was_said(tmp_path):
    with locked(tmp_path / "file"):
        start = time.monotonic()
        with pytest.raises(BlockingIOError, match=IN_USE):
            lock(tmp_path / "file", wait=0.2)
        assert 0.2 <= time.monotonic() - start < 30


def test_after_an_error_the_lock_is_free_and_nothing_is_left_behind(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), locked(tmp_path / "file"):
            raise KeyError
        assert os.listdir(tmp_path) == []
