"""The pretrained model's tokens in a browser are those of the library tokenizers, for any text."""

import json
import random
import string
import sys
import unicodedata

import pytest
from jupyter_lab import open_browser, open_page

from linformer_from_scratch.course.widgets.live import source
from linformer_from_scratch.data import docstrings, documents
from linformer_from_scratch.pretrained import MAX_TOKENS, tokenize
from linformer_from_scratch.pretrained.tokens import pieces, vocabulary
from linformer_from_scratch.pretrained.weights import model_file

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIMIT_MS = 50  # for 10,000 words
LONGEST_MS = 3000  # for a word of a million letters; quadratic work would take hours
READ = """([texts, most]) => JSON.stringify(JSON.parse(texts).map((text) =>
    [reader.ids(text, most ?? Infinity), reader.tokens(text, most ?? Infinity)]))"""


def between(*ends):
    """All characters from the first to the second, from the third to the fourth, and so on."""
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [chr(code) for first, last in pairs for code in range(ord(first), ord(last) + 1)]


LATIN = between("\x80", "\u024f", "\u1e00", "\u1eff")
MARKS = between("\u0300", "\u036f", "\u1ab0", "\u1aff", "\u1dc0", "\u1dff", "\u20d0", "\u20f0")
JAMO = between("\u1100", "\u11ff", "\ua960", "\ua97c", "\ud7b0", "\ud7fb")
BLOCKS = 0x3400, 0x4DC0, 0xA000, 0x20000, 0x2A6E0, 0x2A700, 0x2B820, 0x2B920, 0x2CEB0, 0x2F800, 0x2FA20
SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿«»“”‘’–—…·・、。٪؟․‥†‰⁂⸮〽≠≮\u037e\u1fef\u2e52\u166d"
HIDDEN = "\0\v\f\x1c\x1f\x7f\x85\xad\u034f\u061c\u180e\u200b\u200d\u200e\u200f\u202e\u2060\ufeff\U000e0001"
STRANGE = "\ufffd\ufffe\uffff\ue000\uf8ff\U000f0000\U0010ffff\U000e0041\U000e0100\ufe0f\u061d\u1734\u0890"
EMOJI = "😀 👍🏽 👩🏾‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 🇦 ☎️ 1️⃣ 🏴\U000e0067\U000e0062\U000e007f 𝓐 𝟘"
ALPHABETS = [
    ["the", "Attention", "unaffable", "COVID", "don't", "3.14", "e-mail", "Wörter", "naïve", "can", "##s"],
    between("\0", "\x7f"),
    LATIN,
    [letter + mark for letter in "aeiouncsyI" for mark in "\u0300\u0301\u0308\u0323\u0327\u0338\u0345"],
    MARKS,
    [*"İıIiẞßſΐΣσςΆŸǅŉﬀﬁﬃﬅĲ\u212a"],
    ["ΟΔΟΣ", "ΣΣ.", "ΑΣ\u0301", "Iİ\u0307", "STRASSE", "DŽ"],
    between("\u0370", "\u052f"),  # Greek and Cyrillic
    between("\u0590", "\u08ff"),  # Hebrew, Arabic and their neighbours
    between("\u0900", "\u097f", "\u0e00", "\u0eff"),  # Devanagari, Thai, Lao
    [*JAMO, *"각갂뷁힣한글ㄱㅏ"],
    between("\u3000", "\u30ff", "\u4e00", "\u4eff", "\uf900", "\ufaff"),
    [chr(block + step) for block in BLOCKS for step in (-1, 0, 1)],
    between("\uff00", "\uffef"),  # of full width
    [*SIGNS, "...", "?!?!"],
    list(HIDDEN),
    list(STRANGE),
    EMOJI.split(),
    ["\ud83d", "\ude00", "\ud800", "\udfff", "\ud83d\ude00", "\ude00\ud83d"],
    ["[SEP]", "[CLS]", "[UNK]", "[MASK]", "[PAD]", "##ing", "##", "[unused1]", "[ SEP ]", "\\n", "&amp;"],
    [*" \t\n\r\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000", "  "],
    list("\u0378\u0530\u1c8b\u2fe0\ufdd0\U0001ffff\U00040000\U000e0fff"),  # not assigned
    [chr(code) for code in range(sys.maxunicode + 1)],
]
LONG = [  # a word of more than a hundred characters is not read
    *(n * letter for letter in "xÉ🎉한人!\u200b\u1e69" for n in (33, 34, 50, 51, 99, 100, 101, 10_000)),
    "a" * 99 + "\u0301" * 300 + "b",
    "x" * 100 + "-" + "x" * 101,
]


def hostile(count, seed=0):
    """Texts that are awkward to read, the same for the same seed."""
    draw = random.Random(seed)
    for _ in range(count):
        chosen = draw.sample(ALPHABETS, draw.choice((1, 2, 3, 6)))
        if draw.random() < 0.5:
            chosen += [string.ascii_letters] * 2
        joint, length = draw.choice(("", "", "", " ", "a")), draw.choice((1, 2, 3, 5, 9, 30, 150))
        yield joint.join(draw.choice(draw.choice(chosen)) for _ in range(length))


@pytest.fixture(scope="module")
def page(chromium):
    """A page in which `reader` reads as the pretrained model does."""
    with open_browser(chromium) as browser, open_page(browser) as page:
        page.add_script_tag(content=source("wordpiece"))
        page.evaluate("lines => { window.reader = wordPiece(vocabularyOf(lines)); }", "\n".join(vocabulary()))
        yield page
        assert page.complaints == []


def as_in_a_browser(text):
    """A text as it is in a browser, where two halves beside each other are a character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def differences(page, texts, max_tokens=None):
    """The texts whose ids or tokens in the page are not those of Python.

    Where marks change places, which of an unknown word's is its last is not compared.
    """
    texts = list(map(as_in_a_browser, texts))
    given = [json.dumps(texts), max_tokens]  # as ASCII, halves arrive unharmed
    read = json.loads(page.evaluate(READ, given))
    return [
        ascii(text[:200])
        for text, (ids, tokens) in zip(texts, read, strict=True)
        if ids != tokenize(text, max_tokens).tolist()
        or (tokens != pieces(text, max_tokens) and stays_in_order(text))
    ]


def stays_in_order(text):
    apart = "".join(unicodedata.normalize("NFD", character) for character in text)
    return apart == unicodedata.normalize("NFD", text)


@pytest.mark.parametrize("most", [None, MAX_TOKENS])
def test_the_texts_of_the_course(page, most):
    assert differences(page, [*documents().values(), *docstrings().values()], most) == []


@pytest.mark.parametrize("most", [None, 2, 3, 20])
def test_hostile_texts(page, most):
    assert differences(page, LONG + list(hostile(3000 if most is None else 300)), most) == []


@pytest.mark.parametrize("plane", [0, 1, 2, 14])
def test_every_character_alone_and_in_a_word(page, plane):
    characters = [chr(code) for code in range(plane << 16, (plane + 1) << 16)]
    words = [f"a{character}b {character}" for character in characters]
    assert differences(page, [" ".join(words[i : i + 64]) for i in range(0, len(words), 64)]) == []


def test_every_piece_begins_a_word_and_goes_on_with_one(page):
    pieces = [piece.removeprefix("##") for piece in vocabulary()]
    words = [f"{piece} a{piece} {piece}s" for piece in pieces]
    assert differences(page, [" ".join(words[i : i + 64]) for i in range(0, len(words), 64)]) == []


def test_no_piece_has_a_mark_that_could_change_places():
    assert not any(map(unicodedata.combining, "".join(vocabulary())))


def test_the_vocabulary_is_read_from_its_file(page):
    lines = model_file("vocab.txt").read_text(encoding="utf-8")
    assert page.evaluate("lines => vocabularyOf(lines)", lines) == vocabulary()


def test_tokens_are_words_that_can_be_read(page):
    tokens = page.evaluate("text => reader.tokens(text)", "Unaffable, no🎉way Größe!")
    assert tokens == ["[CLS]", "una", "##ffa", "##ble", ",", "no🎉way", "gr", "##o", "##ße", "!", "[SEP]"]


def test_of_a_long_text_the_model_reads_as_many_tokens_as_it_can(page):
    lengths = page.evaluate("text => [reader.ids(text).length, reader.tokens(text).length]", "one " * 600)
    assert lengths == [MAX_TOKENS, MAX_TOKENS]


def test_a_character_of_two_units_is_one_of_a_hundred(page):
    read = """(pieces) => [51, 100, 101].map((n) => wordPiece(pieces).ids("\\u{1d11e}".repeat(n)))"""
    ids = page.evaluate(read, ["[UNK]", "[CLS]", "[SEP]", "\U0001d11e", "##\U0001d11e"])
    assert ids == [[1, 3, *50 * [4], 2], [1, 3, *99 * [4], 2], [1, 0, 2]]


@pytest.fixture
def processor_ms(page):
    """A function: how much work it is to read a text, whatever else the machine does meanwhile."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(1000 * metric["value"] for metric in metrics if metric["name"] == "ThreadTime")

    def measure(text, repeats=1):
        page.evaluate("([text, repeats]) => { window.text = text.repeat(repeats); }", [text, repeats])
        before = worked()
        page.evaluate("() => { reader.ids(text, Infinity); }")
        return worked() - before

    return measure


def test_it_is_fast_and_long_words_stay_linear(processor_ms, record_property):
    words = " ".join(documents().values()).split()[:10_000]
    took = min(processor_ms(" ".join(words)) for _ in range(5))
    record_property("report", f"10,000 words are read in {took:.0f} ms")
    assert len(words) == 10_000 and took < LIMIT_MS
    for letters in ("a", "É", "🎉", "\u0301\u0323", "\U0001d165\U0001d16d"):
        assert processor_ms(letters, 10**6 // len(letters)) < LONGEST_MS, ascii(letters)
