"""files.py: a file is there in full or not at all, and one alone is inside."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
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
        ("file", "{0}/file is a file, expected a folder"),
        ("file/a/b", "{0}/file is a file, expected a folder"),
        ("link", "{0}/link is a link that leads nowhere, expected a folder"),
        ("link/a", "{0}/link is a link that leads nowhere, expected a folder"),
        ("closed/a/b", "{0}/closed/a/b cannot be made: Permission denied"),
        ("x" * 300, "{0}/" + "x" * 300 + " cannot be made: File name too long"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="other words, and links need a right")
def test_a_folder_that_cannot_be_is_refused_in_one_sentence(tmp_path, monkeypatch, name, refusal):
    (tmp_path / "file").write_text(OLD, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "closed").mkdir()
    make = os.mkdir

    def mkdir(path, *mode):  # root may write everywhere
        if Path(path).parent == tmp_path / "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        make(path, *mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(OSError) as refused:
        make_folder(tmp_path / name)
    assert str(refused.value) == refusal.format(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["closed", "file", "link"]


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


def test_text_that_cannot_be_encoded_leaves_nothing_behind(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        atomic_write(tmp_path / "file", "\ud800")
    assert os.listdir(tmp_path) == []


def test_all_is_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    (tmp_path / "file").write_text(OLD, encoding="utf-8")
    synced = []

    def fsync(number):
        synced.append(os.fstat(number).st_size)
        assert (tmp_path / "file").read_text(encoding="utf-8") == OLD

    monkeypatch.setattr(os, "fsync", fsync)
    atomic_write(tmp_path / "file", NEW)
    assert synced == [len(NEW.encode())]


def test_a_missing_folder_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        atomic_write(tmp_path / "nowhere" / "file", NEW)
    assert error.value.__context__ is None


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
def test_a_kill_leaves_the_old_file_and_the_next_one_succeeds(tmp_path):
    file = tmp_path / "file"
    file.write_text(OLD, encoding="utf-8")
    code = (
        "import os, signal; from pathlib import Path;"
        "from linformer_from_scratch.common.files import atomic_write;"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL);"
        f"atomic_write(Path({str(file)!r}), 'half')"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert file.read_text(encoding="utf-8") == OLD
    atomic_write(file, NEW)
    assert file.read_bytes() == NEW.encode()


def test_two_processes_that_write_the_same_file_each_write_it_whole(tmp_path):
    code = (
        "import sys; from pathlib import Path; from linformer_from_scratch.common.files import atomic_write\n"
        "for _ in range(200): atomic_write(Path(sys.argv[1]), sys.argv[2] * 100_000)"
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


HOLDER = (
    "import sys, time; from pathlib import Path; from linformer_from_scratch.common.files import locked\n"
    "with locked(Path(sys.argv[1])): print('inside', flush=True); time.sleep(float(sys.argv[2]))"
)
IN_USE = r"^.*file is in use by another process; wait until that has ended$"


@contextmanager
def another_inside(path, seconds=60.0):
    """Another process that is inside for this path."""
    words = [sys.executable, "-c", HOLDER, str(path), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"inside\n"
        yield process
        process.kill()


def enter(path, wait=0.0):
    with locked(path, wait):
        pass


def test_only_one_process_is_inside_and_the_other_says_one_sentence(tmp_path):
    with another_inside(tmp_path / "file"), pytest.raises(BlockingIOError, match=IN_USE):
        enter(tmp_path / "file")


def test_only_one_thread_is_inside(tmp_path):
    with locked(tmp_path / "file"), pytest.raises(BlockingIOError, match=IN_USE):
        enter(tmp_path / "file")


def test_a_process_that_is_killed_lets_go_and_what_it_leaves_holds_nobody_up(tmp_path):
    with another_inside(tmp_path / "file") as other:
        other.kill()
        other.wait()
        assert os.listdir(tmp_path) == ["file.lock"]
        enter(tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_behind_after_an_error_too_and_the_next_may_enter(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), locked(tmp_path / "file"):
            assert os.listdir(tmp_path) == ["file.lock"]
            raise KeyError
        assert os.listdir(tmp_path) == []


def test_who_waits_enters_as_soon_as_the_other_has_left(tmp_path):
    with another_inside(tmp_path / "file", 0.4):
        start = time.monotonic()
        enter(tmp_path / "file", wait=60)
        assert time.monotonic() - start < 30


def test_who_waits_in_vain_waits_as_long_as_was_said(tmp_path):
    with locked(tmp_path / "file"):
        start = time.monotonic()
        with pytest.raises(BlockingIOError, match=IN_USE):
            enter(tmp_path / "file", wait=0.2)
        assert 0.2 <= time.monotonic() - start < 30


COUNTER = """
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from linformer_from_scratch.common.files import locked
path = Path(sys.argv[1])
for _ in range(100):
    with locked(path, wait=60):
        path.write_text(str(int(path.read_text("utf-8")) + 1), "utf-8")
"""


def test_no_change_is_lost_when_four_processes_count(tmp_path):
    file = tmp_path / "file"
    file.write_text("0", encoding="utf-8")
    counters = [subprocess.Popen([sys.executable, "-c", COUNTER, str(file)]) for _ in range(4)]
    assert [counter.wait() for counter in counters] == [0] * 4
    assert file.read_text(encoding="utf-8") == "400" and os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="flock")
@pytest.mark.parametrize("content", [None, ""])
def test_a_lock_that_was_removed_in_the_moment_it_was_taken_is_not_held(tmp_path, monkeypatch, content):
    import fcntl

    lock, take = tmp_path / "file.lock", fcntl.flock

    def just_removed(file, operation):
        monkeypatch.setattr(fcntl, "flock", take)
        lock.unlink()  # by whoever was inside, and another may have made it anew
        if content is not None:
            (tmp_path / "new").write_text(content, encoding="utf-8")
            (tmp_path / "new").replace(lock)
        take(file, operation)

    monkeypatch.setattr(fcntl, "flock", just_removed)
    with locked(tmp_path / "file"), pytest.raises(BlockingIOError):
        enter(tmp_path / "file")


@pytest.mark.skipif(os.name == "nt", reason="flock")
def test_a_disk_without_locks_is_used_with_a_warning(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.warns(UserWarning, match="has no locks; see that nobody else writes there"):
        enter(tmp_path / "file")
    assert os.listdir(tmp_path) == []
