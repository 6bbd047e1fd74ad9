"""files.py: a file is there in full or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from linformer_from_scratch.files import write_whole

OLD, NEW = "old ж\n", "new 東京\r\n"


@pytest.mark.parametrize(("content", "bytes_"), [(NEW, NEW.encode()), (b"\0\xff\n", b"\0\xff\n"), ("", b"")])
def test_text_and_bytes_are_written_as_they_are(tmp_path, content, bytes_):
    for _ in range(2):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == bytes_
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_the_old_file_or_none(tmp_path, monkeypatch, there):
    if there:
        (tmp_path / "file").write_text(OLD, encoding="utf-8")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "file", NEW)
    assert os.listdir(tmp_path) == ["file"] * there
    assert not there or (tmp_path / "file").read_text(encoding="utf-8") == OLD


def full_disk(_):
    raise OSError(28, "No space left on device")


def test_text_that_cannot_be_encoded_leaves_nothing_behind(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file", "\ud800")
    assert os.listdir(tmp_path) == []


def test_all_is_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    (tmp_path / "file").write_text(OLD, encoding="utf-8")
    synced = []

    def fsync(number):
        synced.append(os.fstat(number).st_size)
        assert (tmp_path / "file").read_text(encoding="utf-8") == OLD

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(tmp_path / "file", NEW)
    assert synced == [len(NEW.encode())]


def test_a_missing_folder_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        write_whole(tmp_path / "nowhere" / "file", NEW)
    assert error.value.__context__ is None


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
def test_a_kill_leaves_the_old_file_and_the_next_one_succeeds(tmp_path):
    file = tmp_path / "file"
    file.write_text(OLD, encoding="utf-8")
    code = (
        "import os, signal; from pathlib import Path; from linformer_from_scratch.files import write_whole;"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL);"
        f"write_whole(Path({str(file)!r}), 'half')"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert file.read_text(encoding="utf-8") == OLD
    write_whole(file, NEW)
    assert file.read_bytes() == NEW.encode()


def test_two_processes_that_write_the_same_file_each_write_it_whole(tmp_path):
    code = (
        "import sys; from pathlib import Path; from linformer_from_scratch.files import write_whole\n"
        "for _ in range(200): write_whole(Path(sys.argv[1]), sys.argv[2] * 100_000)"
    )
    file = tmp_path / "file"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(file), letter]) for letter in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if file.exists():
            content = file.read_text(encoding="utf-8")
            assert content in ("a" * 100_000, "b" * 100_000)
            seen.add(content[0])
    assert [writer.returncode for writer in writers] == [0, 0] and seen == {"a", "b"}
    assert os.listdir(tmp_path) == ["file"]
