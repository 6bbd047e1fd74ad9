"""data: the shipped text is what was shipped, a bad file gets one sentence, a batch is what it says."""

import hashlib
import json
import os
import random
import tempfile
import unicodedata
from collections import Counter
from itertools import product
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import torch
from refusals import refusing

from linformer_from_scratch import data
from linformer_from_scratch.data import MASK, ByteVocabulary, SubwordVocabulary, read_documents
from linformer_from_scratch.data.batches import held_out
from linformer_from_scratch.data.text import _order
from linformer_from_scratch.data.vocabulary import END


def test_the_shipped_text_is_that_of_cpython():
    """Versions of CPython reword a topic now and then; most stay word for word."""
    texts = data.documents()
    same = [title for title in texts if texts[title] == topics.get(title, "").strip() + "\n"]
    assert len(same) > len(texts) / 3


@pytest.mark.parametrize(("name", "load"), [("SHIPPED", data.shipped_text), ("DOCSTRINGS", data.docstrings)])
def test_a_changed_text_is_refused_with_both_sums(tmp_path, monkeypatch, name, load):
    shipped = getattr(data.text, name)
    copy = tmp_path / shipped.name
    copy.write_text(shipped.read_text(encoding="utf-8") + "one more line\n", encoding="utf-8")
    copy.with_suffix(".json").write_bytes(shipped.with_suffix(".json").read_bytes())
    monkeypatch.setattr(data.text, name, copy)
    with pytest.raises(ValueError, match=rf"{copy.name} has SHA-256 \w{{64}}, expected \w{{64}}"):
        load.__wrapped__()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"abc\0def", r"bad.txt is binary \(byte 3 is zero\)"),
        ("naïve".encode("latin-1"), r"bad.txt is not UTF-8 \(byte 2 is 0xef\); save it as UTF-8"),
    ],
)
def test_a_bad_file_is_named_alone_and_in_a_folder(tmp_path, content, sentence):
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    (tmp_path / "bad.txt").write_bytes(content)
    for path in (tmp_path / "bad.txt", tmp_path):
        with pytest.raises(ValueError, match=sentence):
            read_documents(path)


def test_what_is_missing_or_empty_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere.txt"):
        read_documents(tmp_path / "nowhere.txt")
    with pytest.raises(ValueError, match="holds no text file"):
        read_documents(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"empty.txt is empty, expected text"):
        read_documents(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match=rf"{tmp_path.name} is empty, expected text"):
        read_documents(tmp_path)


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
        with pytest.raises(PermissionError, match=rf"{locked}.* cannot be read: "):
            read_documents(path)


def test_a_folder_is_a_document_a_file_to_the_bottom_without_hidden_folders(tmp_path):
    files = {"b/two.md": "two\f", "a.TXT": "one", "empty.txt": "\n", "no.png": "\0", ".hidden/copy.md": "one"}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_documents(tmp_path) == {"a.TXT": "one", "b/two.md": "two\f"}


def test_a_folder_is_read_in_the_same_order_on_every_system(tmp_path):
    names = ["B.txt", "a.txt", "b/c.txt", "b-.txt", "e\u0301.txt", "f.txt", "Zé.txt"]
    (tmp_path / "b").mkdir()  # Windows would put a before B
    for name in names:
        (tmp_path / name).write_text(name, encoding="utf-8")
    expected = ["B.txt", "Zé.txt", "a.txt", "b/c.txt", "b-.txt", "f.txt", "e\u0301.txt"]
    assert list(map(unify, read_documents(tmp_path))) == list(map(unify, expected))
    composed, apart = sorted(map(unify, names), key=_order), sorted(names, key=_order)
    assert composed == list(map(unify, apart))  # macOS writes é as two letters


def unify(name):
    return unicodedata.normalize("NFC", name)


@pytest.mark.parametrize("lines", [11, 97])
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
        ("\n\n\none line\n\n\n", ["one ", "line\n\n\n"]),
        (" 東京\n", ["東", "京"]),
        ("one page\nof text\n\f", ["one page\n", "of text\n"]),
    ],
)
def test_a_text_in_one_piece_is_cut_at_lines_or_words_or_letters(tmp_path, content, parts):
    (tmp_path / "mine.txt").write_text(content, encoding="utf-8")
    for path in (tmp_path / "mine.txt", tmp_path):
        found = read_documents(path)
        assert list(found.values()) == parts
        assert all(title.startswith("mine.txt, part ") for title in found)
        learned, hidden = data.split(found)
        assert learned and hidden and learned | hidden == found


def test_a_name_that_is_not_utf_8_can_be_read_and_is_told_where_something_is_wrong(tmp_path):
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        (tmp_path / name).write_text("one", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such names")
    (tmp_path / "good.txt").write_text("two", encoding="utf-8")
    learned, hidden = data.split(read_documents(tmp_path))
    assert sorted([*learned.values(), *hidden.values()]) == ["one", "two"]
    (tmp_path / name).write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"caf\\udce9\.txt' is not UTF-8 \(byte 0 is 0xff\)") as caught:
        read_documents(tmp_path)
    str(caught.value).encode()  # any screen can show it


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_of_any_kind_are_read_and_told_in_one_line(tmp_path):
    names = ["a\nb.txt", "c\td.md", "e\\f.txt", " h .txt", "i.txt.txt", "j" * 250 + ".md", "\u202ek.txt"]
    for name in names:
        (tmp_path / name).write_text(name, encoding="utf-8")
    assert read_documents(tmp_path) == {name: name for name in names}
    (tmp_path / names[0]).write_bytes(b"\0")
    with pytest.raises(ValueError, match=r"^'.*a\\nb\.txt' is binary \(byte 0 is zero\), expected text$"):
        read_documents(tmp_path)


@pytest.mark.parametrize(
    ("path", "error", "sentence"),
    [
        ("", ValueError, r"the path is '', expected that of a file or folder"),
        ("~nobody-of-this-name/a.txt", FileNotFoundError, "no home folder for ~nobody-of-this-name/a.txt"),
        ("x" * 300 + ".txt", OSError, r"x{9}\.txt"),
        ("good.txt/below", OSError, "good.txt/below"),
    ],
)
def test_a_path_that_cannot_be_is_refused_in_one_sentence(tmp_path, monkeypatch, path, error, sentence):
    monkeypatch.chdir(tmp_path)
    Path("good.txt").write_text("good", encoding="utf-8")
    with pytest.raises(error, match=sentence) as caught:
        read_documents(path)
    assert "\n" not in str(caught.value) and "Errno" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\ufeffnaïve\r\nStraße 東京\n".encode(), "naïve\nStraße 東京\n"),
        (b"a\rb\r\r\nc\n\r", "a\rb\r\nc\n\r"),
        ("a\u2028b\x85c\x1cd\x0be".encode(), "a\u2028b\x85c\x1cd\x0be"),
        (b"\n" * 5000 + b"end", "\n" * 5000 + "end"),
    ],
)
def test_every_character_of_a_file_is_read_and_every_part_that_is_not_blank_is_kept(tmp_path, raw, expected):
    (tmp_path / "mine.txt").write_bytes(raw)
    assert data.text._read_file(tmp_path / "mine.txt") == expected
    found = "".join(read_documents(tmp_path / "mine.txt").values())
    assert found.split() == expected.split() and found in expected


TEXTS = ["The quick brown fox jumps over the lazy dog. " * 7, "naïve Straße, naïve Straße"]
ANY = ["", " ", "a", "naïve\r\n\tStraße  ", "東京 and 北京", "🎉👩\u200d🚀", "e\u0301 \ufeff\0\x1f"]
ANY += ["<mask> a<pad><end>"]
VOCABULARIES = {"bytes": ByteVocabulary, "subwords": lambda: SubwordVocabulary(TEXTS, 283)}
every_vocabulary = pytest.mark.parametrize("kind", VOCABULARIES)


@every_vocabulary
@pytest.mark.parametrize("some", ANY)
def test_any_text_comes_back_and_never_holds_a_special_token(kind, some):
    vocabulary = VOCABULARIES[kind]()
    ids = vocabulary.encode(some)
    assert all(type(i) is int and 2 < i < vocabulary.size for i in ids)
    assert vocabulary.decode(ids) == some
    assert vocabulary.decode([data.PAD, *ids, MASK, END]) == some


def test_bytes_are_tokens_after_the_special_ones():
    assert (data.PAD, MASK, END) == (0, 1, 2) and ByteVocabulary.size == 259
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
    some = list(data.docstrings().values())[:20]
    ids = [SubwordVocabulary(some, 503).encode(some[0]) for _ in range(3)]
    assert ids[0] == ids[1] == ids[2]


def test_subwords_come_back_from_their_file_which_may_lie_at_home(home):
    vocabulary = VOCABULARIES["subwords"]()
    vocabulary.save("~/pieces.json")
    loaded = SubwordVocabulary.load(home / "pieces.json")
    assert loaded.size == vocabulary.size
    for some in (*TEXTS, *ANY):
        assert loaded.encode(some) == vocabulary.encode(some)
        assert loaded.decode(loaded.encode(some)) == some


def test_a_file_that_is_no_vocabulary_or_would_lose_text_is_named(tmp_path):
    (tmp_path / "half.json").write_text("{", encoding="utf-8")
    VOCABULARIES["subwords"]().save(tmp_path / "whole.json")
    found = json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))
    found["model"]["vocab"] |= {"<pad>": 1, "<mask>": 0}
    (tmp_path / "other.json").write_text(json.dumps(found), encoding="utf-8")
    for name in ("half.json", "nowhere.json", "other.json"):
        with pytest.raises(ValueError, match=rf"{name} is not a vocabulary of (subwords|this course): "):
            SubwordVocabulary.load(tmp_path / name)


def test_what_is_held_out_depends_on_the_title_alone():
    titles = [f"title {i}" for i in range(2003)]
    drawn = held_out(titles)
    assert drawn == held_out(iter(titles)) and set(drawn) < set(titles)
    assert set(held_out(titles[::-1])) == set(drawn)
    assert held_out(titles[:501]) == [title for title in drawn if title in titles[:501]]
    more = held_out(titles, share=0.4)
    assert set(drawn) < set(more) and len(more) == pytest.approx(0.4 * len(titles), rel=0.2)
    assert drawn[:3] == ["title 21", "title 22", "title 23"]  # on every machine


@pytest.mark.parametrize("files", [2, 5])
def test_however_few_documents_there_are_one_is_held_out_and_one_is_learned(files):
    """Where the draw by names gives both sides something, it is the draw by names."""
    draw, empty = random.Random(files), 0
    for _ in range(100):
        titles = [f"{draw.randrange(10**9)}.txt" for _ in range(files)]
        places = [int(hashlib.sha256(t.encode()).hexdigest()[:8], 16) / 2**32 for t in titles]
        drawn = [title for title, place in zip(titles, places, strict=True) if place < 0.2]
        empty += not drawn
        expected = drawn or [titles[places.index(min(places))]]
        if len(drawn) == files:
            expected = [title for title, place in zip(titles, places, strict=True) if place < max(places)]
        assert held_out(titles) == expected and 0 < len(expected) < files
    assert empty > 5  # of these names, the draw alone would have held nothing out
    with pytest.raises(ValueError, match="1 documents cannot be split, expected at least 2"):
        held_out(titles[:1])


def test_the_same_name_is_drawn_alike_however_its_accents_are_written():
    composed = [f"é {i}" for i in range(200)]
    apart = [unicodedata.normalize("NFD", title) for title in composed]
    assert apart != composed
    assert held_out(apart) == [unicodedata.normalize("NFD", title) for title in held_out(composed)]
    assert len(held_out(["é", "e\u0301"])) == 1


def test_the_shipped_texts_are_split_as_in_the_recorded_runs():
    for texts, expected in ((data.docstrings(), [1333634, 418787]), (data.documents(), [310152, 154818])):
        assert [sum(map(len, side.values())) for side in data.split(texts)] == expected


def test_a_stream_is_every_text_and_an_end():
    vocabulary = ByteVocabulary()
    ids = data.stream(["ab", "", "c"], vocabulary)
    assert ids.tolist() == [3 + 97, 3 + 98, END, END, 3 + 99, END] and ids.dtype == torch.long


VOCAB, SEQ_LEN = 29, 23


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n", [SEQ_LEN, 11, 1])
def test_masking_chooses_the_same_share_of_every_row_and_keeps_the_rest(n):
    ids = torch.randint(3, VOCAB, (211, n), generator=generator(1))
    before = ids.clone()
    inputs, targets = data.mask_tokens(ids, VOCAB, generator())
    chosen = targets != data.IGNORE
    assert torch.equal(ids, before)
    assert (chosen.sum(1) == {23: 3, 11: 2, 1: 1}[n]).all()  # round(.15 n), at least 1
    assert torch.equal(targets[chosen], ids[chosen]) and torch.equal(inputs[~chosen], ids[~chosen])


def test_of_the_chosen_80_10_10_are_masked_replaced_and_kept():
    ids = torch.full((20_011, SEQ_LEN), END)  # a token that no random one equals
    inputs, targets = data.mask_tokens(ids, VOCAB, generator())
    found = inputs[targets != data.IGNORE]
    random = found[(found != MASK) & (found != END)]
    shares = [(found == MASK), (found != MASK) & (found != END), (found == END)]
    for share, expected in zip(shares, (0.8, 0.1, 0.1), strict=True):
        assert abs(share.float().mean() - expected) < 4 * (expected * (1 - expected) / len(found)) ** 0.5
    counts = torch.bincount(random, minlength=VOCAB)
    assert (counts[:3] == 0).all() and len(counts) == VOCAB
    mean = len(random) / (VOCAB - 3)
    assert ((counts[3:] - mean).abs() < 5 * mean**0.5).all()


def test_every_position_and_every_pair_is_equally_likely():
    _, targets = data.mask_tokens(torch.full((20_011, SEQ_LEN), 5), VOCAB, generator())
    chosen = (targets != data.IGNORE).double()
    p, pair = 3 / SEQ_LEN, 3 * 2 / (SEQ_LEN * (SEQ_LEN - 1))
    together = chosen.T @ chosen / len(chosen)
    assert ((together.diagonal() - p).abs() < 5 * (p / len(chosen)) ** 0.5).all()
    beside = together[~torch.eye(SEQ_LEN, dtype=torch.bool)]
    assert ((beside - pair).abs() < 5 * (pair / len(chosen)) ** 0.5).all()


def test_a_masked_batch_is_a_function_of_seed_and_step():
    ids = torch.randint(3, VOCAB, (307,), generator=generator())
    batches = [data.MaskedBatches(ids, SEQ_LEN, 5, VOCAB, seed) for seed in (0, 0, 1)]
    for step in (3, 0, 2**33):
        first, again, other = (one(step) for one in batches)
        assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
        assert not torch.equal(first[0], other[0]) and not torch.equal(first[0], batches[0](step + 1)[0])
        assert first[0].shape == first[1].shape == (5, SEQ_LEN)
    assert not torch.equal(batches[0](1)[0], batches[2](0)[0])  # not seed + step


def test_every_seed_and_step_has_its_own_stream():
    large = [0, 1, 5, 2**32, 2**32 + 1, 5 * 2**32, 2**64, 10**30, -1, -(2**32)]
    pairs = {*product(range(40), (*range(60), 10**6, 2**31)), *product(large, large)}
    assert len({data.generator_of(*pair).initial_seed() for pair in pairs}) == len(pairs) > 2500


def test_a_generator_draws_what_it_drew_when_the_runs_were_recorded():
    for (seed, step), drawn in (((0, 0), [676, 938, 673]), ((7, 2999), [485, 600, 502])):
        assert torch.randint(1000, (3,), generator=data.generator_of(seed, step)).tolist() == drawn


def test_windows_are_pieces_of_the_stream_the_first_and_the_last_too():
    ids = torch.arange(3, 3 + SEQ_LEN + 6)
    inputs, targets = data.MaskedBatches(ids, SEQ_LEN, 101, 3 + len(ids))(0)
    windows = torch.where(targets == data.IGNORE, inputs, targets)
    starts = windows[:, 0]
    assert torch.equal(windows, starts[:, None] + torch.arange(SEQ_LEN))
    assert starts.unique().tolist() == list(range(3, 3 + 7))


def test_an_epoch_has_every_text_once_in_an_order_of_its_own():
    ids, labels = torch.arange(11)[:, None].expand(-1, 7), torch.arange(11) * 2
    batches, again, other = (data.LabelledBatches(ids, labels, 3, seed) for seed in (0, 0, 1))
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


def test_padding_fills_short_rows_and_cuts_long_ones():
    found = data.pad([[3, 4], [], [5, 6, 7, 8]], 3)
    assert found.tolist() == [[3, 4, data.PAD], [data.PAD] * 3, [5, 6, 7]] and found.dtype == torch.long


test_what_makes_no_batches_is_refused_with_both_numbers = refusing(
    (lambda: data.MaskedBatches(torch.arange(22), SEQ_LEN, 2, VOCAB), "22 tokens, .* seq_len=23"),
    (lambda: data.MaskedBatches(torch.arange(30), SEQ_LEN, 0, VOCAB), "batch_size is 0, expected"),
    (lambda: data.LabelledBatches(torch.zeros(3, 7), torch.zeros(2), 2), "3 texts and 2 labels; need"),
    (lambda: data.LabelledBatches(torch.zeros(0, 7), torch.zeros(0), 2), "0 texts and 0 labels; .* non"),
    (lambda: SubwordVocabulary((1 / 0 for _ in "a"), 10**6 + 1), "size is 1000001, .* 259 … 1000000"),
)
