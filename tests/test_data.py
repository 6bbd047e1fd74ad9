"""data: the shipped text is what was shipped, a bad file gets one sentence, a batch is what it says."""

import ast
import hashlib
import inspect
import json
import os
import random
import socket
import sysconfig
import tempfile
import unicodedata
from collections import Counter
from itertools import product
from pathlib import Path, PurePosixPath, PureWindowsPath
from pydoc_data.topics import topics

import pytest
import torch

from linformer_from_scratch.data import (
    END,
    IGNORE,
    MASK,
    PAD,
    ByteVocabulary,
    LabelledBatches,
    MaskedBatches,
    SubwordVocabulary,
    docstrings,
    documents,
    generator_of,
    held_out,
    mask_tokens,
    pad,
    read_documents,
    read_text,
    shipped_text,
    split,
    stream,
    text,
)
from linformer_from_scratch.data.text import order_of, title_of

STDLIB = Path(sysconfig.get_paths()["stdlib"])


def test_the_shipped_text_is_english_in_documents():
    assert len(shipped_text()) > 400_000
    assert len(documents()) > 70 and all(body.strip() for body in documents().values())
    assert documents()["assert"].startswith('The "assert" statement')


def test_the_shipped_text_is_that_of_cpython():
    """Versions of CPython reword a topic now and then; most stay word for word."""
    same = [title for title in documents() if documents()[title] == topics.get(title, "").strip() + "\n"]
    assert len(same) > len(documents()) / 3


@pytest.mark.parametrize(("name", "load"), [("SHIPPED", shipped_text), ("DOCSTRINGS", docstrings)])
def test_a_changed_text_is_refused_with_both_sums(tmp_path, monkeypatch, name, load):
    shipped = getattr(text, name)
    copy = tmp_path / shipped.name
    copy.write_text(read_text(shipped) + "one more line\n", encoding="utf-8")
    copy.with_suffix(".json").write_bytes(shipped.with_suffix(".json").read_bytes())
    monkeypatch.setattr(text, name, copy)
    with pytest.raises(ValueError, match=rf"{copy.name} has SHA-256 \w{{64}}, expected \w{{64}}"):
        load.__wrapped__()


def docstrings_of(module):
    """Docstrings of the running CPython's source of a module, or none where it has no such module."""
    path = STDLIB.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.Module([], [])
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    return [inspect.cleandoc(one).strip() for one in found if one]


def test_the_docstrings_are_many_modules_of_english():
    assert len(docstrings()) > 400 and sum(map(len, docstrings().values())) > 1_500_000
    assert all(len(body) > 200 for body in docstrings().values())
    assert docstrings()["json"].startswith(
        "JSON (JavaScript Object Notation) <https://json.org> is a subset of"
    )


def test_the_docstrings_are_those_of_cpython():
    """Of all modules but those that other docstrings quote; versions of CPython reword one now and then."""
    modules = ["json", "argparse", "email.message", "asyncio.locks", "heapq", "textwrap", "xml.dom.minidom"]
    theirs = [(module, one) for module in modules for one in docstrings_of(module) if len(one) >= 30]
    same = [one in docstrings()[module] for module, one in theirs]
    assert len(same) > 100 and sum(same) > 0.7 * len(same)


@pytest.mark.parametrize("twins", [("_py_abc", "abc"), ("bz2", "lzma")])
def test_a_docstring_of_two_modules_is_kept_in_one(twins):
    first, second = map(docstrings_of, twins)
    both = {one for one in first if one in second and len(one) > 100}
    assert both and all(sum(one in body for body in docstrings().values()) <= 1 for one in both)


def test_a_file_of_your_own_keeps_every_character(tmp_path):
    (tmp_path / "mine.txt").write_bytes("\ufeffnaïve\r\nStraße 東京\n".encode())
    assert read_text(tmp_path / "mine.txt") == "naïve\nStraße 東京\n"


def test_a_folder_is_read_in_order_and_to_the_bottom(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.md").write_text("two", encoding="utf-8")
    (tmp_path / "a.TXT").write_text("one", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\0")
    assert read_text(tmp_path) == "one\ntwo"


def test_hidden_folders_are_left_out_and_empty_files_do_no_harm(tmp_path):
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "copy.md").write_text("one", encoding="utf-8")
    (tmp_path / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "one.md").write_text("one", encoding="utf-8")
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
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(ValueError, match=sentence):
            read_text(path)


def test_what_is_missing_or_empty_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere.txt"):
        read_text(tmp_path / "nowhere.txt")
    with pytest.raises(ValueError, match="holds no text file"):
        read_text(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
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
        (folder / "inner/locked.txt").write_text("secret", encoding="utf-8")
        (folder / "good.txt").write_text("good", encoding="utf-8")
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
        for read in (read_text, read_documents):
            with pytest.raises(PermissionError, match=rf"{locked}.* may not be read"):
                read(path)


def test_a_folder_is_a_document_a_file(tmp_path):
    (tmp_path / "b").mkdir()
    for name, content in (("b/two.md", "two\f"), ("a.txt", "one"), ("empty.txt", "\n"), ("no.png", "\0")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_documents(tmp_path) == {"a.txt": "one", "b/two.md": "two\f"}


@pytest.mark.parametrize("kind", [PurePosixPath, PureWindowsPath])
def test_a_title_is_the_same_on_every_system(kind):
    assert title_of(kind("my texts", "b", "two.md"), kind("my texts")) == "b/two.md"


def test_a_folder_is_read_in_the_same_order_on_every_system(tmp_path):
    names = [
        "B.txt",
        "a.txt",
        "b/c.txt",
        "b-.txt",
        "e\u0301.txt",
        "f.txt",
        "Zé.txt",
    ]  # Windows would put a before B
    (tmp_path / "b").mkdir()
    for name in names:
        (tmp_path / name).write_text(name, encoding="utf-8")
    expected = ["B.txt", "Zé.txt", "a.txt", "b/c.txt", "b-.txt", "f.txt", "e\u0301.txt"]
    assert list(map(unify, read_documents(tmp_path))) == list(map(unify, expected))
    composed, apart = sorted(map(unify, names), key=order_of), sorted(names, key=order_of)
    assert composed == list(map(unify, apart))  # macOS writes é as two letters


def unify(name):
    return unicodedata.normalize("NFC", name)


def test_form_feeds_cut_a_file_into_titled_documents(tmp_path):
    for beginning in ("\f", ""):
        (tmp_path / "mine.txt").write_text(f"{beginning}One\nfirst\nline\n\fTwo\nsecond\n", encoding="utf-8")
        assert read_documents(tmp_path / "mine.txt") == {"One": "first\nline\n", "Two": "second\n"}


@pytest.mark.parametrize(
    "content",
    [
        "one page\nof text\n\f",  # as pdftotext ends every page
        "One\nfirst\n\fTwo",
        "RFC 1\nfirst\n\fRFC 1\nsecond\n\fRFC 1\nthird\n",  # as the running heads of a printed text
        "\f\nfirst\n\f\nsecond\n",  # as form feeds on lines of their own
    ],
)
def test_no_text_between_form_feeds_is_lost(tmp_path, content):
    (tmp_path / "mine.txt").write_text(content, encoding="utf-8")
    found = read_documents(tmp_path / "mine.txt")
    together = " ".join(f"{title} {body}" for title, body in found.items())
    assert all(word in together for word in content.split())


@pytest.mark.parametrize("lines", [10, 11, 97])
def test_a_file_without_form_feeds_is_ten_parts_that_join_to_the_whole(tmp_path, lines):
    content = "".join(f"line {i} \u2028 naïve\n" for i in range(lines)) + "no end"
    (tmp_path / "mine.txt").write_text(content, encoding="utf-8")
    found = read_documents(str(tmp_path / "mine.txt"))
    assert list(found) == [f"mine.txt, part {i} of 10" for i in range(1, 11)]
    assert "".join(found.values()) == content
    sizes = [len(part) for part in found.values()]
    assert lines < 97 or max(sizes) < 1.5 * min(sizes)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("one line", ["one ", "line"]),
        ("\n\n\none line\n\n\n", ["one ", "line\n\n\n"]),
        ("word", ["w", "o", "r", "d"]),
        (" 東京\n", ["東", "京"]),
        ("one page\nof text\n\f", ["one page\n", "of text\n"]),
        ("\fTitle\nbody\n", ["Title\n", "body\n"]),
        ("\fa b\f\f", ["a ", "b\f\f"]),
    ],
)
def test_a_text_in_one_piece_is_cut_at_lines_or_words_or_letters(tmp_path, content, parts):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "inner/mine.txt").write_text(content, encoding="utf-8")
    for path, name in ((tmp_path / "inner/mine.txt", "mine.txt"), (tmp_path, "inner/mine.txt")):
        found = read_documents(path)
        assert list(found.values()) == parts
        assert all(title.startswith(f"{name}, part ") for title in found)
        learned, hidden = split(found)
        assert learned and hidden and learned | hidden == found


def test_a_single_letter_cannot_be_split_and_says_so(tmp_path):
    (tmp_path / "mine.txt").write_text("x\n", encoding="utf-8")
    found = read_documents(tmp_path / "mine.txt")
    assert len(found) == 1
    with pytest.raises(ValueError, match=r"of 1 documents are held out at share=0\.2; expected at least one"):
        split(found)


def test_no_part_takes_the_place_of_another(tmp_path):
    """A title may read as the number that a later part without one would get."""
    content = "mine.txt, part 2\nfirst\n\f\nsecond\n\f\nthird\n\fmine.txt, part 4\nfourth\n"
    (tmp_path / "mine.txt").write_text(content, encoding="utf-8")
    found = read_documents(tmp_path / "mine.txt")
    together = " ".join(found.values())
    assert len(found) == 4 and all(word in together for word in ("first", "second", "third", "fourth"))


def test_a_name_that_is_not_utf_8_can_be_read_and_is_told_where_something_is_wrong(tmp_path):
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        (tmp_path / name).write_text("one", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such names")
    (tmp_path / "good.txt").write_text("two", encoding="utf-8")
    learned, hidden = split(read_documents(tmp_path))
    assert sorted([*learned.values(), *hidden.values()]) == ["one", "two"]
    (tmp_path / name).write_bytes(b"\xff")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(ValueError, match=r"caf\\udce9\.txt' is not UTF-8 \(byte 0 is 0xff\)") as caught:
            read_documents(path)
        str(caught.value).encode()  # any screen can show it
    for gone in (tmp_path / name / "x", tmp_path / f"{name}x"):
        with pytest.raises(OSError, match=r"caf\\udce9\.txt") as caught:
            read_text(gone)
        str(caught.value).encode()


def test_links_lose_nothing_and_double_nothing(tmp_path):
    folder, other = tmp_path / "texts", tmp_path / "other"
    for path in (folder / "inner", other / "below"):
        path.mkdir(parents=True)
    (tmp_path / "above.txt").write_text("above", encoding="utf-8")
    (folder / "z.txt").write_text("z", encoding="utf-8")
    (folder / "inner/one.txt").write_text("one", encoding="utf-8")
    (other / "two.txt").write_text("two", encoding="utf-8")
    (other / "below/three.txt").write_text("three", encoding="utf-8")
    for link, target in (
        ("a.txt", folder / "z.txt"),  # the same file
        ("b.txt", other / "two.txt"),
        ("inner/again", folder),  # circles
        ("inner/above", tmp_path),
        ("linked", other),
        ("twice", other / "below"),
        ("other.bin", other / "two.txt"),
    ):
        try:
            (folder / link).symlink_to(target)
        except OSError:
            pytest.skip("this system makes no links")
    assert read_documents(folder) == {
        "b.txt": "two",
        "inner/one.txt": "one",
        "linked/below/three.txt": "three",
        "z.txt": "z",
    }
    (folder / "circle.txt").symlink_to(folder / "circle.txt")
    for path in (folder, folder / "circle.txt"):
        with pytest.raises(OSError, match=r"circle\.txt cannot be read: "):
            read_text(path)
    (folder / "circle.txt").unlink()
    (folder / "lost.md").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*lost\.md"):
        read_text(folder)


def pipe(path):
    assert hasattr(os, "mkfifo")
    os.mkfifo(path)


def socket_file(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("make", [pipe, socket_file])
def test_a_pipe_is_not_waited_for(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    make("pipe.txt")
    for path in ("pipe.txt", "."):
        with pytest.raises(ValueError, match=r"pipe\.txt is neither a file nor a folder, expected text"):
            read_text(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_of_any_kind_are_read_and_told_in_one_line(tmp_path):
    names = [
        "a\nb.txt",
        "c\td.md",
        "e\\f.txt",
        "'g'.txt",
        " h .txt",
        "i.txt.txt",
        "j" * 250 + ".md",
        "\u202ek.txt",
    ]
    for name in names:
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "folder.txt/l.txt").write_text("l", encoding="utf-8")
    found = read_documents(tmp_path)
    assert found == {name: name for name in names} | {"folder.txt/l.txt": "l"}
    (tmp_path / names[0]).write_bytes(b"\0")
    with pytest.raises(ValueError, match=r"^'.*a\\nb\.txt' is binary \(byte 0 is zero\), expected text$"):
        read_text(tmp_path)


@pytest.mark.parametrize(
    ("path", "error", "sentence"),
    [
        ("", ValueError, r"the path is '', expected that of a file or folder"),
        ("a\0b.txt", ValueError, r"the path is 'a\\x00b\.txt', expected"),
        ("~nobody-of-this-name/a.txt", FileNotFoundError, "no home folder for ~nobody-of-this-name/a.txt"),
        ("x" * 300 + ".txt", OSError, r"x{9}\.txt"),
        ("good.txt/below", OSError, "good.txt/below"),
    ],
)
def test_a_path_that_cannot_be_is_refused_in_one_sentence(tmp_path, monkeypatch, path, error, sentence):
    monkeypatch.chdir(tmp_path)
    Path("good.txt").write_text("good", encoding="utf-8")
    for read in (read_text, read_documents):
        with pytest.raises(error, match=sentence) as caught:
            read(path)
        assert "\n" not in str(caught.value) and "Errno" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xef\xbb\xbfa\r\nb", "a\nb"),
        (b"a\rb\r\r\nc\n\r", "a\rb\r\nc\n\r"),
        ("\ufeff\ufeffa".encode(), "\ufeffa"),
        ("a\u2028b\x85c\x1cd\x0be".encode(), "a\u2028b\x85c\x1cd\x0be"),
        (b"x" * 2_000_003, "x" * 2_000_003),  # one long line
        (b"\n" * 5000 + b"end", "\n" * 5000 + "end"),
        ("\U0010ffff\ue000\u200b".encode(), "\U0010ffff\ue000\u200b"),
    ],
)
def test_every_character_of_a_file_is_read_and_every_part_that_is_not_blank_is_kept(tmp_path, raw, expected):
    (tmp_path / "mine.txt").write_bytes(raw)
    assert read_text(tmp_path / "mine.txt") == expected
    found = "".join(read_documents(tmp_path / "mine.txt").values())
    assert found.split() == expected.split() and found in expected


@pytest.mark.parametrize(
    "raw", [b"", b" \n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b"\f\f\n", "\u3000\x85".encode()]
)
def test_what_is_blank_is_empty(tmp_path, raw):
    (tmp_path / "blank.txt").write_bytes(raw)
    for read, path in product((read_text, read_documents), (tmp_path, tmp_path / "blank.txt")):
        with pytest.raises(ValueError, match=f"{path.name} is empty, expected text"):
            read(path)


@pytest.mark.parametrize(
    "raw",
    [
        "a".encode("utf-16"),
        "a".encode("utf-32"),
        b"%PDF-1.7\n\xe2\xe3",
        b"a\xed\xa0\x80",
        b"\xc0\x80",
        b"a\xf0\x9f\x8e",
    ],
)
def test_what_is_no_utf_8_is_never_half_read(tmp_path, raw):
    (tmp_path / "bad.txt").write_bytes(raw)
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    for read, path in product((read_text, read_documents), (tmp_path, tmp_path / "bad.txt")):
        with pytest.raises(ValueError, match=r"bad\.txt is (not UTF-8|binary) \(byte \d is "):
            read(path)


def test_a_folder_of_hidden_folders_says_that_these_are_left_out(tmp_path):
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/one.txt").write_text("one", encoding="utf-8")
    with pytest.raises(ValueError, match=r"holds no text file \(.*\) outside hidden folders"):
        read_documents(tmp_path)
    assert read_text(tmp_path / ".hidden") == "one"


def test_no_bad_file_is_half_read_into_documents(tmp_path):
    with pytest.raises(ValueError, match="holds no text file"):
        read_documents(tmp_path)
    for name, content, sentence in (
        ("empty.txt", b" \n", "empty.txt is empty, expected text"),
        ("music.txt", b"good\n\0", r"music.txt is binary \(byte 5 is zero\)"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            read_documents(tmp_path / name)
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        read_documents(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere"):
        read_documents(tmp_path / "nowhere")


TEXTS = ["The quick brown fox jumps over the lazy dog. " * 7, "naïve Straße, naïve Straße"]
ANY = [
    "",
    " ",
    "a",
    "naïve\r\n\tStraße  ",
    "東京 and 北京",
    "🎉👩\u200d🚀",
    "e\u0301 \ufeff\0\x1f",
    "<mask> a<pad><end>",
]
VOCABULARIES = {"bytes": ByteVocabulary, "subwords": lambda: SubwordVocabulary(TEXTS, 283)}
every_vocabulary = pytest.mark.parametrize("kind", VOCABULARIES)


@every_vocabulary
@pytest.mark.parametrize("some", ANY)
def test_any_text_comes_back_and_never_holds_a_special_token(kind, some):
    vocabulary = VOCABULARIES[kind]()
    ids = vocabulary.encode(some)
    assert all(type(i) is int and 2 < i < vocabulary.size for i in ids)
    assert vocabulary.decode(ids) == some
    assert vocabulary.decode([PAD, *ids, MASK, END]) == some


def test_bytes_are_tokens_after_the_special_ones():
    assert (PAD, MASK, END) == (0, 1, 2) and ByteVocabulary.size == 259
    assert ByteVocabulary().encode("aé") == [3 + 97, 3 + 0xC3, 3 + 0xA9]
    assert ByteVocabulary().decode([3 + 97, 3 + 0xC3]) == "a�"


def test_subwords_are_as_many_as_asked_for_and_fewer_tokens_than_bytes():
    vocabulary = VOCABULARIES["subwords"]()
    assert vocabulary.size == 283
    assert len(vocabulary.encode(TEXTS[0])) < len(TEXTS[0]) / 2
    assert SubwordVocabulary(["a"], 1000).size == 259
    with pytest.raises(ValueError, match="vocabulary size is 258, expected an integer in 259"):
        SubwordVocabulary(TEXTS, 258)


def test_the_same_text_gives_the_same_subwords():
    some = list(docstrings().values())[:20]
    ids = [SubwordVocabulary(some, 503).encode(some[0]) for _ in range(3)]
    assert ids[0] == ids[1] == ids[2]


def test_subwords_come_back_from_their_file_which_may_lie_at_home(home):
    vocabulary = VOCABULARIES["subwords"]()
    vocabulary.save("~/pieces.json")
    loaded = SubwordVocabulary.load(home / "pieces.json")
    assert SubwordVocabulary.load("~/pieces.json").size == loaded.size
    assert loaded.size == vocabulary.size
    for some in (*TEXTS, *ANY):
        assert loaded.encode(some) == vocabulary.encode(some)
        assert loaded.decode(loaded.encode(some)) == some


@pytest.mark.parametrize("content", ["", "{}", "half"])
def test_a_damaged_vocabulary_is_named(tmp_path, content):
    VOCABULARIES["subwords"]().save(tmp_path / "pieces.json")
    whole = (tmp_path / "pieces.json").read_text(encoding="utf-8")
    (tmp_path / "pieces.json").write_text(
        whole[: len(whole) // 2] if content == "half" else content, encoding="utf-8"
    )
    for name in ("pieces.json", "nowhere.json"):
        with pytest.raises(ValueError, match=rf"{name} is no vocabulary of subwords: "):
            SubwordVocabulary.load(tmp_path / name)


@pytest.mark.parametrize(
    "size", [258, 0, -1, 10**6 + 1, 10**12, 2**64, 300.0, "300", None, True, float("nan")]
)
def test_a_size_that_no_vocabulary_has_is_refused_before_anything_is_learned(size):
    expected = f"vocabulary size is {size!r}, expected an integer in 259 … 1000000"
    with pytest.raises(ValueError, match=expected):
        SubwordVocabulary((1 / 0 for _ in "a"), size)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A vocabulary in its file, and what the file holds."""
    path = tmp_path_factory.mktemp("saved") / "pieces.json"
    VOCABULARIES["subwords"]().save(path)
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(8))
def test_a_vocabulary_with_a_damaged_byte_is_refused_or_loses_nothing(tmp_path, saved, seed):
    whole, draw = VOCABULARIES["subwords"](), random.Random(seed)
    for _ in range(40):
        damaged = bytearray(saved)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        (tmp_path / "pieces.json").write_bytes(damaged)
        try:
            found = SubwordVocabulary.load(tmp_path / "pieces.json")
        except ValueError as error:
            assert "pieces.json is no vocabulary of" in str(error) and "\n" not in str(error)
        else:
            assert found.size == whole.size
            for some in (*TEXTS, *ANY):
                assert found.decode(found.encode(some)) == some and max(found.encode(some), default=0) < 283


def settle(**changes):
    return lambda found: found | changes


def model(**changes):
    return lambda found: found | {"model": found["model"] | changes}


def pieces(change):
    return lambda found: found | {"model": found["model"] | {"vocab": change(found["model"]["vocab"])}}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (settle(pre_tokenizer=None), "its pre_tokenizer is None, expected"),
        (settle(decoder=None), "its decoder is None, expected"),
        (settle(normalizer={"type": "Lowercase"}), "its normalizer is .*Lowercase.*, expected None"),
        (
            settle(
                truncation={"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
            ),
            "its truncation is .*'max_length': 2.*, expected None",
        ),
        (settle(added_tokens=[]), r"its added_tokens is \[\], expected"),
        (model(dropout=0.5), "its dropout is 0.5, expected None"),
        (pieces(lambda found: found | {"Zz": 999}), "its 284 tokens are not numbered from 0 to 283"),
        (pieces(lambda found: found | {"Zz": 5}), "its 284 tokens are not numbered from 0 to 283"),
        (
            pieces(lambda found: {("Zz" if piece == "Q" else piece): i for piece, i in found.items()}),
            "it has 255 of 256 bytes",
        ),
        (
            pieces(
                lambda found: {{"<pad>": "<mask>", "<mask>": "<pad>"}.get(p, p): i for p, i in found.items()}
            ),
            "",
        ),
    ],
)
def test_a_vocabulary_that_would_lose_text_is_refused(tmp_path, saved, change, sentence):
    (tmp_path / "pieces.json").write_text(json.dumps(change(json.loads(saved))), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"pieces\.json is no vocabulary of .*: {sentence}"):
        SubwordVocabulary.load(tmp_path / "pieces.json")


def test_what_is_held_out_depends_on_the_title_alone():
    titles = [f"title {i}" for i in range(2003)]
    drawn = held_out(titles)
    assert drawn == held_out(iter(titles)) and set(drawn) < set(titles)
    assert set(held_out(titles[::-1])) == set(drawn)
    assert held_out(titles[:501]) == [title for title in drawn if title in titles[:501]]
    assert drawn[:3] == ["title 21", "title 22", "title 23"]  # on every machine


def test_split_puts_every_document_on_one_side():
    texts = {f"title {i}": f"text {i}" for i in range(50)}
    learned, hidden = split(texts)
    assert list(hidden) == held_out(texts) and learned | hidden == texts
    assert list(learned) == [title for title in texts if title not in hidden]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_about_that_share_is_held_out(share):
    found = len(held_out([f"title {i}" for i in range(2003)], share)) / 2003
    assert abs(found - share) < 4 * (share * (1 - share) / 2003) ** 0.5


def test_two_empty_sides_are_refused():
    titles = [f"title {i}" for i in range(7)]
    for some, share, message in ((titles, 0.0, "0 of 7"), (titles, 1.0, "7 of 7"), ([], 0.2, "0 of 0")):
        with pytest.raises(ValueError, match=f"{message} documents are held out at share={share}"):
            held_out(some, share)


@pytest.mark.parametrize("files", [2, 3, 5, 10])
def test_however_few_documents_there_are_one_is_held_out_and_one_is_learned(files):
    """Where the draw by names gives both sides something, it is the draw by names."""
    draw, empty = random.Random(files), 0
    for _ in range(300):
        titles = [f"{draw.randrange(10**9)}.txt" for _ in range(files)]
        places = [int(hashlib.sha256(t.encode()).hexdigest()[:8], 16) / 2**32 for t in titles]
        drawn = [title for title, place in zip(titles, places, strict=True) if place < 0.2]
        empty += not drawn
        expected = drawn or [titles[places.index(min(places))]]
        if len(drawn) == files:
            expected = [title for title, place in zip(titles, places, strict=True) if place < max(places)]
        assert held_out(titles) == expected and 0 < len(expected) < files
    assert empty > 20  # of these names, the draw alone would have held nothing out


def test_a_large_share_leaves_one_to_learn_from():
    titles = [f"title {i}" for i in range(7)]
    assert len(held_out(titles, 0.999999)) == 6 and len(held_out(titles, 1e-9)) == 1


def test_the_same_name_is_drawn_alike_however_its_accents_are_written():
    composed = [f"é {i}" for i in range(200)]
    apart = [unicodedata.normalize("NFD", title) for title in composed]
    assert apart != composed and held_out(apart) == [
        unicodedata.normalize("NFD", t) for t in held_out(composed)
    ]
    both = ["é", "e\u0301"]
    assert len(held_out(both)) == 1


def test_the_shipped_texts_are_split_as_in_the_recorded_runs():
    for texts, expected in ((docstrings(), [1333634, 418787]), (documents(), [310152, 154818])):
        assert [sum(map(len, side.values())) for side in split(texts)] == expected


def test_a_stream_is_every_text_and_an_end():
    vocabulary = ByteVocabulary()
    ids = stream(["ab", "", "c"], vocabulary)
    assert ids.tolist() == [3 + 97, 3 + 98, END, END, 3 + 99, END] and ids.dtype == torch.long


VOCAB, SEQ_LEN = 29, 23


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n", [SEQ_LEN, 11, 1])
def test_masking_chooses_the_same_share_of_every_row_and_keeps_the_rest(n):
    ids = torch.randint(3, VOCAB, (211, n), generator=generator(1))
    before = ids.clone()
    inputs, targets = mask_tokens(ids, VOCAB, generator())
    chosen = targets != IGNORE
    assert torch.equal(ids, before)
    assert (chosen.sum(1) == {23: 3, 11: 2, 1: 1}[n]).all()  # round(.15 n), at least 1
    assert torch.equal(targets[chosen], ids[chosen]) and torch.equal(inputs[~chosen], ids[~chosen])


def test_of_the_chosen_80_10_10_are_masked_replaced_and_kept():
    ids = torch.full((20_011, SEQ_LEN), END)  # a token that no random one equals
    inputs, targets = mask_tokens(ids, VOCAB, generator())
    found = inputs[targets != IGNORE]
    random = found[(found != MASK) & (found != END)]
    shares = [(found == MASK), (found != MASK) & (found != END), (found == END)]
    for share, expected in zip(shares, (0.8, 0.1, 0.1), strict=True):
        assert abs(share.float().mean() - expected) < 4 * (expected * (1 - expected) / len(found)) ** 0.5
    counts = torch.bincount(random, minlength=VOCAB)
    assert (counts[:3] == 0).all() and len(counts) == VOCAB
    mean = len(random) / (VOCAB - 3)
    assert ((counts[3:] - mean).abs() < 5 * mean**0.5).all()


def test_every_position_and_every_pair_is_equally_likely():
    _, targets = mask_tokens(torch.full((20_011, SEQ_LEN), 5), VOCAB, generator())
    chosen = (targets != IGNORE).double()
    p, pair = 3 / SEQ_LEN, 3 * 2 / (SEQ_LEN * (SEQ_LEN - 1))
    together = chosen.T @ chosen / len(chosen)
    assert ((together.diagonal() - p).abs() < 5 * (p / len(chosen)) ** 0.5).all()
    beside = together[~torch.eye(SEQ_LEN, dtype=torch.bool)]
    assert ((beside - pair).abs() < 5 * (pair / len(chosen)) ** 0.5).all()


def test_a_masked_batch_is_a_function_of_seed_and_step():
    ids = torch.randint(3, VOCAB, (307,), generator=generator())
    batches = [MaskedBatches(ids, SEQ_LEN, 5, VOCAB, seed) for seed in (0, 0, 1)]
    for step in (3, 0, 2**33):
        first, again, other = (one(step) for one in batches)
        assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
        assert not torch.equal(first[0], other[0]) and not torch.equal(first[0], batches[0](step + 1)[0])
        assert first[0].shape == first[1].shape == (5, SEQ_LEN)
    assert not torch.equal(batches[0](1)[0], batches[2](0)[0])  # not seed + step


PAIRS = [*product(range(40), (*range(60), 10**6, 1_000_003, 10**9, 2**31, 2**32 - 1))]
LARGE = [
    0,
    1,
    5,
    2**32,
    2**32 + 1,
    5 * 2**32,
    5 * 2**32 + 1,
    2**33,
    2**64,
    2**64 + 2**32,
    10**30,
    -1,
    -(2**32),
    -(2**64),
]


def test_every_seed_and_step_has_a_stream_of_its_own():
    pairs = {*PAIRS, *product(LARGE, LARGE)}
    first = {generator_of(*pair).initial_seed() for pair in pairs}
    assert len(first) == len(pairs) > 2500


def test_a_generator_draws_what_it_drew_when_the_runs_were_recorded():
    drawn = [
        torch.randint(1000, (3,), generator=generator_of(*pair)).tolist() for pair in ((0, 0), (7, 2999))
    ]
    assert drawn == [[676, 938, 673], [485, 600, 502]]


@pytest.mark.parametrize("pair", [(2.0, 0), (0, 1.5), ("1", 0), (None, 0), (float("nan"), 0)])
def test_a_seed_that_is_no_integer_is_refused(pair):
    with pytest.raises(
        ValueError, match=f"seed and step are {pair[0]!r} and {pair[1]!r}, expected two integers"
    ):
        generator_of(*pair)


@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_empty_windows_and_batches_are_refused(size):
    expected = f"is {size!r}, expected an integer of at least 1"
    with pytest.raises(ValueError, match=f"batch_size {expected}"):
        MaskedBatches(torch.arange(30), SEQ_LEN, size, VOCAB)
    with pytest.raises(ValueError, match=f"seq_len {expected}"):
        MaskedBatches(torch.arange(30), size, 2, VOCAB)
    with pytest.raises(ValueError, match=f"batch_size {expected}"):
        LabelledBatches(torch.zeros(3, 7), torch.zeros(3), size)


def test_windows_are_pieces_of_the_stream_the_first_and_the_last_too():
    ids = torch.arange(3, 3 + SEQ_LEN + 6)
    inputs, targets = MaskedBatches(ids, SEQ_LEN, 101, 3 + len(ids))(0)
    windows = torch.where(targets == IGNORE, inputs, targets)
    starts = windows[:, 0]
    assert torch.equal(windows, starts[:, None] + torch.arange(SEQ_LEN))
    assert starts.unique().tolist() == list(range(3, 3 + 7))


def test_a_stream_of_one_window_is_enough_and_a_shorter_one_is_refused():
    assert MaskedBatches(torch.arange(3, 3 + SEQ_LEN), SEQ_LEN, 2, VOCAB)(0)[0].shape == (2, SEQ_LEN)
    with pytest.raises(ValueError, match="the text has 22 tokens, expected at least seq_len=23"):
        MaskedBatches(torch.arange(22), SEQ_LEN, 2, VOCAB)


def test_an_epoch_has_every_text_once_in_an_order_of_its_own():
    ids, labels = torch.arange(11)[:, None].expand(-1, 7), torch.arange(11) * 2
    batches, again, other = (LabelledBatches(ids, labels, 3, seed) for seed in (0, 0, 1))
    assert len(batches) == 4
    orders = []
    for epoch in range(3):
        found = [batches(4 * epoch + i) for i in range(4)]
        assert [len(inputs) for inputs, _ in found] == [3, 3, 3, 2]
        assert all((inputs * 2 == answers[:, None]).all() for inputs, answers in found)
        orders.append([i for _, answers in found for i in answers.tolist()])
    assert all(Counter(order) == Counter(labels.tolist()) for order in orders)
    assert len(set(map(tuple, orders))) == 3
    assert torch.equal(again(7)[0], batches(7)[0]) and not torch.equal(other(0)[0], batches(0)[0])


@pytest.mark.parametrize(("texts", "labels"), [(3, 2), (2, 3), (0, 0)])
def test_texts_without_their_labels_are_refused(texts, labels):
    with pytest.raises(ValueError, match=f"{texts} texts and {labels} labels"):
        LabelledBatches(torch.zeros(texts, 7), torch.zeros(labels), 2)


def test_padding_fills_short_rows_and_cuts_long_ones():
    found = pad([[3, 4], [], [5, 6, 7, 8]], 3)
    assert found.tolist() == [[3, 4, PAD], [PAD] * 3, [5, 6, 7]] and found.dtype == torch.long
