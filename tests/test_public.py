"""data/public.py with the real library `datasets`, on small repositories laid out as the hub's; offline."""

import os
import re
import socket
import subprocess
import sys
import time

import datasets
import pyarrow
import pytest
from pyarrow import parquet

from linformer_from_scratch.data import public, public_documents, public_reviews

LINES = [
    "",
    " before any title \n",
    " = First = \n",
    "",
    " one \n",
    " = = Section = = \n",
    " two \n",
    " = = = Deeper = = = \n",
    " three = 3 \n",
    " = 3 , a formula \n",
    " = E = mc2 = \n",
    " four \n",
    " = Nothing but a title = \n",
    "",
    " = Last = \n",
    " five \n",
]
REVIEWS, LABELS = [f"review {i}" for i in range(11)], [0] * 5 + [1] * 6


@pytest.fixture(autouse=True)
def hub(tmp_path, monkeypatch):
    """Both corpora in folders of this test; whoever asks for another machine fails."""
    text, label = {"text": LINES}, {"text": REVIEWS, "label": LABELS}
    wikitext = repository(tmp_path / "wikitext", "wikitext-103-raw-v1", {"train": text})
    imdb = repository(
        tmp_path / "imdb", "plain_text", {"train": label, "test": {"text": ["other"], "label": [1]}}
    )
    found = {"wikitext-103": (wikitext, "wikitext-103-raw-v1"), "imdb": (imdb, "plain_text")}
    monkeypatch.setattr(public, "HUB", found)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)


def repository(folder, configuration, splits):
    (folder / configuration).mkdir(parents=True)
    card = ["---", "configs:", f"- config_name: {configuration}", "  data_files:"]
    for split, columns in splits.items():
        parquet.write_table(
            pyarrow.table(columns), folder / configuration / f"{split}-00000-of-00001.parquet"
        )
        card += [f"  - split: {split}", f"    path: {configuration}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]), encoding="utf-8")
    return str(folder)


def no_network(*arguments, **_):
    raise AssertionError(f"the network was asked for {arguments}")


def test_wikitext_is_cut_at_titles_and_not_at_sections():
    assert public_documents("wikitext-103") == {
        "beginning": " before any title \n",
        "First": " one \n = = Section = = \n two \n = = = Deeper = = = \n three = 3 \n = 3 , a formula \n",
        "E = mc2": " four \n",
        "Last": " five \n",
    }


@pytest.mark.parametrize(("limit", "titles"), [(1, 0), (2, 1), (5, 2), (11, 2), (12, 3), (99, 4)])
def test_a_limit_of_wikitext_counts_lines(limit, titles):
    assert len(public_documents("wikitext-103", limit=limit)) == titles


def test_articles_of_one_title_keep_both_texts():
    assert public._articles([" = A = \n", "1", " = B = \n", "2", " = A = \n", "3"]) == {"A": "13", "B": "2"}


def test_documents_of_imdb_are_its_reviews():
    found = public_documents("imdb")
    assert list(found.values()) == REVIEWS and list(found)[:2] == ["imdb train 0", "imdb train 1"]
    assert list(public_documents("imdb", limit=3).values()) == REVIEWS[:3]
    assert public_documents("imdb", "test") == {"imdb test 0": "other"}


def test_reviews_come_with_their_labels():
    assert public_reviews() == (REVIEWS, LABELS)
    assert public_reviews("test") == (["other"], [1])


@pytest.mark.parametrize("limit", [2, 3, 4, 6, 10, 11, 99])
def test_a_limit_of_reviews_leaves_both_labels_alike(limit):
    texts, labels = public_reviews(limit=limit)
    assert 2 <= len(texts) == len(labels) <= limit
    assert len(texts) >= min(limit, 11) // 2
    assert abs(labels.count(0) - labels.count(1)) <= 1
    assert all(LABELS[REVIEWS.index(text)] == label for text, label in zip(texts, labels, strict=True))


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="there is no corpus 'wiki'; known are wikitext-103, imdb"):
        public_documents("wiki")


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    for call in (lambda: public_documents("imdb"), public_reviews):
        with pytest.raises(ImportError, match=r"^corpora by name need the library datasets") as caught:
            call()
        assert re.findall("`(.+?)`", str(caught.value)) == [
            "python tools/course.py install --with corpora",
            "pip install datasets",
        ]


def test_a_repository_that_is_gone_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(public.HUB, "imdb", (str(tmp_path / "gone"), "plain_text"))
    with pytest.raises(ConnectionError, match=r"^imdb cannot be fetched from .*gone: .*\Z") as error:
        public_documents("imdb")
    assert "\n" not in str(error.value) and str(error.value).endswith("the shipped text needs no network")


def test_a_broken_download_is_one_sentence(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("half a file\nand more")

    monkeypatch.setattr(datasets, "load_dataset", broken)
    with pytest.raises(ConnectionError, match=r"from .*imdb: half a file; the shipped text"):
        public_reviews()


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3", True])
def test_a_limit_below_one_is_refused(limit):
    for call in (lambda: public_documents("imdb", limit=limit), lambda: public_reviews(limit=limit)):
        with pytest.raises(ValueError, match=f"limit is {limit!r}, expected an integer of at least 1"):
            call()


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ("banana", r"^imdb, split 'banana': Unknown split .*'train', 'test'"),
        ("", r"^imdb, split '': "),
        (None, "^the split is None, expected a name such as 'train'"),
        (5, "^the split is 5, expected"),
    ],
)
def test_an_unknown_split_is_refused_with_its_corpus(split, sentence):
    for call in (lambda: public_documents("imdb", split), lambda: public_reviews(split)):
        with pytest.raises(ValueError, match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"text": ["a", None], "label": [0, 1]}, "a row has None as its text, expected str"),
        ({"text": [1, 2], "label": [0, 1]}, "a row has 1 as its text, expected str"),
        (
            {"words": ["a", "b"], "label": [0, 1]},
            "None as its text, expected str; its columns are words, label",
        ),
        ({"text": ["a", "b"]}, "a row has None as its label, expected int; its columns are text"),
        ({"text": ["a", "b"], "label": [0, None]}, "a row has None as its label, expected int"),
        (  # as the reviews of imdb that nobody has labelled
            {"text": ["a", "b"], "label": [-1, -1]},
            r"imdb's split 'train' has the labels \[-1\], expected 0 and 1",
        ),
        ({"text": ["a", "b"], "label": [0, 2]}, r"has the labels \[0, 2\], expected 0 and 1"),
    ],
)
def test_rows_of_another_kind_are_refused(tmp_path, monkeypatch, columns, sentence):
    folder = repository(tmp_path / "other", "plain_text", {"train": columns})
    monkeypatch.setitem(public.HUB, "imdb", (folder, "plain_text"))
    with pytest.raises(ValueError, match=sentence):
        public_reviews()


def cut(raw):
    return raw[: len(raw) // 2]


def blot(raw):
    return raw[:1000] + bytes(200) + raw[1200:]


def empty(raw):
    return b""


@pytest.mark.parametrize("damage", [cut, blot, empty])
def test_a_damaged_file_is_one_sentence_with_its_corpus(tmp_path, monkeypatch, damage):
    columns = {"text": [f"a line {i}" for i in range(5003)]}
    folder = repository(tmp_path / "damaged", "wikitext-103-raw-v1", {"train": columns})
    (file,) = (tmp_path / "damaged").rglob("*.parquet")
    file.write_bytes(damage(file.read_bytes()))
    monkeypatch.setitem(public.HUB, "wikitext-103", (folder, "wikitext-103-raw-v1"))
    with pytest.raises((ValueError, ConnectionError), match=r"^wikitext-103[, ]") as caught:
        public_documents("wikitext-103")
    assert "\n" not in str(caught.value)


def test_a_line_of_equals_signs_is_no_title():
    assert public._articles([" = \n", " x \n", " = A = \n", "1"]) == {"beginning": " = \n x \n", "A": "1"}


@pytest.mark.parametrize("name", ["wikitext-103", "imdb"])
def test_offline_one_sentence_comes_within_seconds(name, tmp_path):
    code = f"""
import linformer_from_scratch.data as data
try:
    data.public_documents({name!r})
except ConnectionError as error:
    print(error)
"""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        encoding="utf-8",
    )
    assert time.perf_counter() - begin < 60  # nearly all of it are imports
    assert done.returncode == 0, done.stderr
    (sentence,) = done.stdout.splitlines()
    assert sentence.startswith(f"{name} cannot be fetched from ")
    assert sentence.endswith("; the shipped text needs no network")
