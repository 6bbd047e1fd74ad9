"""encode: texts to vectors, as sentence-transformers has them."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.data import docstrings
from linformer_from_scratch.pretrained import sentence_encoder, texts, tokenize
from linformer_from_scratch.pretrained.weights import model_folder

SAME = {"atol": 1e-6, "rtol": 0}
SOME = [
    "The bank raised its rates because it expected inflation to rise.",
    "Rates rose.",
    "naïve café — 北京",
    " ".join(["A cat chased its own tail until it was tired."] * 9),
    "x",
]


@pytest.fixture(scope="module")
def encoder():
    return sentence_encoder.full_encoder()


@pytest.fixture(scope="module")
def alone(encoder):
    with torch.no_grad():
        return torch.cat([encoder.embed(tokenize(text)[None]) for text in SOME])


@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_vectors_come_in_the_order_of_the_texts_however_they_are_batched(encoder, alone, batch_size):
    found = encoder.encode(SOME, batch_size=batch_size)
    assert_close(found, alone, **SAME)
    assert found.shape == (5, 384) and not found.requires_grad
    assert_close(found.norm(dim=1), torch.ones(5))
    assert (found @ found.mT - torch.eye(5)).max() < 0.9  # five texts, five vectors


def test_one_text_gives_one_vector_and_none_give_none(encoder, alone):
    assert_close(encoder.encode(SOME[0]), alone[0], **SAME)
    assert encoder.encode(SOME[0]).shape == (384,)
    assert encoder.encode([]).shape == (0, 384)


def test_what_gives_texts_one_after_another_will_do(encoder, alone):
    for given in (tuple(SOME), iter(SOME), (text for text in SOME), np.array(SOME)):
        assert_close(encoder.encode(given), alone, **SAME)


def test_texts_of_like_length_go_together_the_longest_first(encoder, monkeypatch):
    seen = []
    embed = encoder.embed

    def watched(ids, mask):
        seen.append(mask.sum(dim=1).tolist())
        assert ids.shape == mask.shape and mask.size(1) == mask.sum(dim=1).max()
        return embed(ids, mask)

    monkeypatch.setattr(encoder, "embed", watched)
    encoder.encode(SOME, batch_size=2)
    lengths = sorted((len(tokenize(text)) for text in SOME), reverse=True)
    assert seen == [lengths[:2], lengths[2:4], lengths[4:]]


LONG = "word " * 600  # and two marks
WRONG = {
    r"the text is '': it has 0 tokens, expected at least 1": ("", {}),
    r"texts\[1\] is None, expected a string": (["a", None], {}),
    r"expected a text or a list of texts, got dict {'a': 1}": ({"a": 1}, {}),
    r"texts\[0\] is tensor\(101\), expected a string": (torch.tensor([101, 102]), {}),
    r"texts\[1\] has 602 tokens, expected at most 512; .* truncate=True .*window=510 .*": (["a", LONG], {}),
    "got truncate=True and window=100, expected one of the two": ("a", {"truncate": True, "window": 100}),
    "window is 511, expected an integer in 1 … 510": ("a", {"window": 511}),
    "batch_size is 0, expected an integer of at least 1": ("a", {"batch_size": 0}),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_cannot_be_encoded_is_refused_in_one_sentence(encoder, sentence):
    given, options = WRONG[sentence]
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        encoder.encode(given, **options)


def test_truncated_texts_are_read_to_their_512th_token_and_the_rest_is_counted(encoder):
    with pytest.warns(UserWarning, match="^2 of 3 texts have .* the last 280 .* at most 190 of one") as told:
        found = encoder.encode(["a", LONG, "word " * 700], truncate=True)
    assert told[0].filename == __file__
    assert_close(found[1], encoder.embed(tokenize("word " * 510)[None])[0].detach(), **SAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for truncate in (True, False):
            encoder.encode(["a", "word " * 510], truncate=truncate)  # nothing is lost


def test_texts_of_which_the_vocabulary_knows_nothing_are_counted(encoder):
    with pytest.warns(UserWarning, match="^2 of 3 texts hold no word that the vocabulary knows") as told:
        found = encoder.encode(["😀", "a", "🚀"])
    assert told[0].filename == __file__
    assert_close(found[0], found[2])  # as told


def test_a_window_gives_the_mean_of_pieces_of_nearly_equal_length(encoder):
    words = [f"word{i}" for i in "abcdefghijk"]  # two tokens each
    text, body = " ".join(words), tokenize(" ".join(words))[1:-1]
    pieces = [body[:8], body[8:15], body[15:]]
    assert list(map(len, pieces)) == [8, 7, 7]
    ends = torch.tensor([101]), torch.tensor([102])
    with torch.no_grad():
        vectors = [encoder.embed(torch.cat([ends[0], piece, ends[1]])[None])[0] for piece in pieces]
    expected = torch.nn.functional.normalize(sum(vectors), dim=0)
    found = encoder.encode(["Rates rose.", text], window=8)
    assert_close(found[1], expected, **SAME)
    assert_close(found[0], encoder.encode("Rates rose."), **SAME)
    assert (found[1] - encoder.encode(text)).abs().max() > 1e-3
    assert encoder.encode(LONG, window=510).shape == (384,)


def test_long_work_shows_a_bar_and_short_work_none(encoder, capsys, monkeypatch):
    encoder.encode(SOME)
    assert capsys.readouterr().err == ""
    encoder.encode(SOME, progress=True)
    assert "5/5" in capsys.readouterr().err
    monkeypatch.setattr(texts, "PATIENCE", 0.0)
    encoder.encode(SOME, batch_size=2)
    assert "5/5" in capsys.readouterr().err
    encoder.encode(SOME)  # one batch, however long it takes
    assert capsys.readouterr().err == ""
    encoder.encode(SOME, progress=False)
    assert capsys.readouterr().err == ""


def test_the_exact_encoder_gives_the_vectors_of_sentence_transformers(encoder):
    library = pytest.importorskip("sentence_transformers")
    theirs = library.SentenceTransformer(str(model_folder()), device="cpu")
    assert theirs.max_seq_length == 256  # by default it leaves out the rest, and says nothing
    theirs.max_seq_length = 512
    some = SOME + [text[: 90 * i + 20] for i, text in enumerate(list(docstrings().values())[:20])]
    assert_close(encoder.encode(some), torch.as_tensor(theirs.encode(some)), **SAME)


def test_an_encoder_that_does_not_embed_says_so():
    with pytest.raises(NotImplementedError, match="TextEncoder does not define embed"):
        texts.TextEncoder().embed(torch.zeros(1, 3, dtype=torch.long))


PROCESSES = """
import multiprocessing, sys, threading
from concurrent.futures import ThreadPoolExecutor
import torch
from torch.utils.data import DataLoader
from linformer_from_scratch.pretrained import attention_maps, sentence_encoder

TEXTS = ["Rates rose again today.", "one two three " * 70]

def sums(encoder):
    found = [encoder.encode(text).abs().sum().item() for text in TEXTS]
    return torch.tensor([*found, attention_maps(TEXTS[0]).weights.std()])

def told(encoder, pipe):
    pipe.send(sums(encoder).tolist())

def elsewhere(method, encoder):
    assert method == "spawn" or sys.platform != "win32"
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=told, args=(encoder, there))
    process.start()
    return torch.tensor(here.recv()) if here.poll(30) else process.kill() or torch.zeros(3)

def always():
    while not done.is_set():
        attention_maps(TEXTS[1])

if __name__ == "__main__":
    torch.set_num_threads(2)
    encoder, done = sentence_encoder.fitted_encoder(128), threading.Event()
    here = sums(encoder)
    if sys.argv[1] == "threads":
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(sums, 3 * [encoder]))
    elif sys.argv[1] == "loader":
        loader = DataLoader(TEXTS, num_workers=1, collate_fn=lambda some: sums(encoder), timeout=30)
        found = [*loader]
    elif sys.argv[1] == "fork":  # while another thread is in the middle of a pass
        thread = threading.Thread(target=always)
        thread.start()
        found = [elsewhere("fork", encoder) for _ in range(3)]
        done.set()
        thread.join()
    else:
        found = [elsewhere("spawn", encoder)]
    print(all(torch.allclose(one, here, atol=1e-4) for one in found), found, here)
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ["threads", "spawn", pytest.param("loader", marks=forks), pytest.param("fork", marks=forks)]
)
def test_texts_are_read_in_threads_and_in_other_processes_as_in_this_one(way, tmp_path):
    (tmp_path / "script.py").write_text(PROCESSES, encoding="utf-8")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(tmp_path / "script.py"), way]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=100)
    assert ran.stdout.startswith("True ") and ran.stderr == "", ran.stdout + ran.stderr
