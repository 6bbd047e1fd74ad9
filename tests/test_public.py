"""data/public.py with the real library `datasets`, on small repositories laid out as the hub's; offline."""

import os
import re
import socket
import subprocess
import sys

import datasets
import pyarrow
import pytest
from pyarrow import parquet
from refusals import refusing

from linformer_from_scratch.data import public, public_documents

WIKITEXT = (
    "| before any title \n| = First = \n|| one \n| = = Section = = \n| two \n| = = = Deeper = = = \n"
    "| three = 3 \n| = 3 , a formula \n| = E = mc2 = \n| four \n| = Nothing but a title = \n"
    "|| = Last = \n| five \n"
)
LINES = WIKITEXT.split("|")
REVIEWS, LABELS = [f"review {i}" for i in range(11)], [0] * 5 + [1] * 6


@pytest.fixture(autouse=True)
def hub(tmp_path, monkeypatch):
    """Both corpora in folders of this test; whoever asks for another machine fails."""
    splits = {"train": {"text": REVIEWS, "label": LABELS}, "test": {"text": ["other"], "label": [1]}}
    wikitext = repository(tmp_path / "wikitext", "wikitext-103-raw-v1", {"train": {"text": LINES}})
    imdb = repository(tmp_path / "imdb", "plain_text", splits)
    found = {"wikitext-103": (wikitext, "wikitext-103-raw-v1"), "imdb": (imdb, "plain_text")}
    monkeypatch.setattr(public, "HUB", found)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)


def repository(folder, configuration, splits):
    (folder / configuration).mkdir(parents=True)
    card = ["---", "configs:", f"- config_name: {configuration}", "  data_files:"]
    for split, columns in splits.items():
        file = folder / configuration / f"{split}-00000-of-00001.parquet"
        parquet.write_table(pyarrow.table(columns), file)
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


def test_a_limit_of_wikitext_counts_lines():
    documents = [public_documents("wikitext-103", limit=limit) for limit in (1, 2, 11, 12, 99)]
    assert list(map(len, documents)) == [0, 1, 2, 3, 4]


def test_articles_of_one_title_keep_both_texts_and_equals_signs_are_no_title():
    assert public._articles([" = A = \n", "1", " = B = \n", "2", " = A = \n", "3"]) == {"A": "13", "B": "2"}
    assert public._articles([" = \n", " x \n", " = A = \n", "1"]) == {"beginning": " = \n x \n", "A": "1"}


def test_documents_of_imdb_are_its_reviews():
    found = public_documents("imdb")
    assert list(found.values()) == REVIEWS and list(found)[:2] == ["imdb train 0", "imdb train 1"]
    assert list(public_documents("imdb", limit=3).values()) == REVIEWS[:3]
    assert public_documents("imdb", "test") == {"imdb test 0": "other"}


test_what_no_corpus_has_is_refused_with_what_there_is = refusing(
    (("wiki",), "there is no corpus 'wiki'; known are wikitext-103, imdb"),
    (("imdb", "train", 0), "limit is 0, expected an integer of at least 1"),
    (("imdb", "banana"), r"^imdb, split 'banana': Unknown split .*'train', 'test'.*\Z"),
    by=lambda asked: public_documents(*asked),
)


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"^corpora by name need the library datasets") as caught:
        public_documents("imdb")
    commands = re.findall("`(.+?)`", str(caught.value))
    assert commands == ["python tools/course.py install --with corpora", "pip install datasets"]


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
        public_documents("imdb")


def test_a_damaged_file_is_one_sentence_with_its_corpus(tmp_path, monkeypatch):
    columns = {"text": [f"a line {i}" for i in range(5003)]}
    folder = repository(tmp_path / "damaged", "wikitext-103-raw-v1", {"train": columns})
    (file,) = (tmp_path / "damaged").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:5000])
    monkeypatch.setitem(public.HUB, "wikitext-103", (folder, "wikitext-103-raw-v1"))
    with pytest.raises((ValueError, ConnectionError), match=r"^wikitext-103[, ].*\Z"):
        public_documents("wikitext-103")


@pytest.mark.slow
def test_offline_one_sentence_comes(tmp_path):
    command = [sys.executable, "-c", "from linformer_from_scratch import data; data.public_documents('imdb')"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ConnectionError: imdb cannot be fetched from ")
    assert said.endswith("; the shipped text needs no network")
