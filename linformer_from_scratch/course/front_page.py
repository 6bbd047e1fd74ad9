"""The front page's experiment: which sentences of a text answer a question, read exactly and through k slots.

The whole text goes through the encoder at once, with exact attention or `windows` of k slots. The vector of
a sentence is the mean of its tokens' outputs; the question is encoded by itself, and cosines rank them.
"""

import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.content import read_yaml
from linformer_from_scratch.pretrained.contrastive import ranks_of
from linformer_from_scratch.pretrained.encoding import encode
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.sentence_encoder import full_encoder, silent_encoder
from linformer_from_scratch.pretrained.tokens import tokenize, vocabulary
from linformer_from_scratch.pretrained.windows import windows

SLOTS = (4, 8, 16, 32, 64, 128)
OPENING = "Where do I throw away the old machine?", 16  # question and k
BEST = 3  # sentences that are shown
ON_PAGE = 20  # questions that it asks
HEAD = 0, 3  # layer and head of the map, from 0; in the first layer slots change neither queries nor tokens
SHADES = 14  # of a map's weights
CONTROLS = SINGLE, SILENT, ALONE = "a single summary", "no attention", "each sentence alone"
SENTENCE = re.compile(  # from what is no space to what is none; sentences.js has the same
    r"\S(?:[^\n]*?\S)??(?:(?<=[.!?؟।])(?=\s)"  # a mark before a space,
    r"|(?<=[。！？])[。！？」』”’）]*|(?=\s*(?![^\n])))"  # one that needs none, or the end of a line
)


class Text(NamedTuple):
    """A text, and questions -> the beginning of the sentence that answers each."""

    name: str
    text: str
    questions: Mapping[str, str]


@cache
def texts() -> tuple[Text, ...]:
    """The texts of front_page.yml; the first is the page's."""
    content = read_yaml(PACKAGE / "course" / "front_page.yml")
    return tuple(Text(entry["name"], entry["text"], entry["questions"]) for entry in content)


def sentences(text: str) -> list[str]:
    """A text's sentences: each ends at the end of a line, or with a mark that ends one in its script."""
    return SENTENCE.findall(text)


def answer(one: Text, question: str) -> int:
    """Place of the sentence that answers, from 0.

    Raises: ValueError if it is not one sentence that begins so.
    """
    (place,) = (i for i, line in enumerate(sentences(one.text)) if line.startswith(one.questions[question]))
    return place


def spans(text: str) -> list[tuple[int, int]]:
    """First token of each sentence, and the one behind its last, in the tokens of the whole text."""
    ends = [1]  # behind [CLS]
    for line in sentences(text):
        ends.append(ends[-1] + len(tokenize(line, None)) - 2)
    return list(pairwise(ends))


@torch.no_grad()
def vectors(encoder: SentenceEncoder, text: str) -> Tensor:
    """A unit vector for each sentence, read within the whole text. Shape: (sentences, 384)"""
    hidden = encoder(tokenize(text, None)[None])[0]
    return functional.normalize(torch.stack([hidden[a:b].mean(0) for a, b in spans(text)]), dim=-1)


def search(question: str, text: str, encoder: SentenceEncoder) -> list[str]:
    """The sentences of a text that an encoder has read as a whole, the best answer first."""
    cosines = full_encoder().encode([question]) @ vectors(encoder, text).mT
    (order,) = cosines.argsort(dim=-1, descending=True, stable=True)  # of equal ones the earlier first
    lines = sentences(text)
    return [lines[place] for place in order.tolist()]


@cache
def scores(place: int) -> dict[str, Tensor]:
    """Way to read text number `place` -> cosines (questions, sentences): "exact", each k, CONTROLS."""
    one, exact = texts()[place], full_encoder()
    questions = exact.encode(list(one.questions))
    ways = {"exact": vectors(exact, one.text)}
    ways |= {str(k): vectors(window_encoder(k), one.text) for k in SLOTS}
    ways[SINGLE], ways[SILENT] = (vectors(some, one.text) for some in (window_encoder(3), silent_encoder()))
    ways[ALONE] = exact.encode(sentences(one.text))
    return {way: questions @ found.mT for way, found in ways.items()}


def ranks(cosines: Tensor, one: Text) -> Tensor:
    """At which place the sentence that answers is found. Shape: (questions, sentences) -> (questions,)"""
    return ranks_of(cosines, [answer(one, question) for question in one.questions])


def hits(cosines: Tensor, one: Text) -> int:
    """For how many of a text's questions the sentence that answers is among the first BEST."""
    return int((ranks(cosines, one) <= BEST).sum())


@cache
def all_ranks() -> dict[str, Tensor]:
    """Way to read -> at which place each question about each text finds what answers it."""
    by_text = [{way: ranks(some, one) for way, some in scores(i).items()} for i, one in enumerate(texts())]
    return {way: torch.cat([of_text[way] for of_text in by_text]) for way in by_text[0]}


def found() -> dict[str, int]:
    """Way to read -> for how many questions the sentence that answers is among the first BEST."""
    return {way: int((places <= BEST).sum()) for way, places in all_ranks().items()}


def asked() -> int:
    """How many questions that is."""
    return sum(len(one.questions) for one in texts())


@torch.no_grad()
def maps() -> dict[str, Tensor]:
    """The page's text as one head attends to it: "exact" -> (n, n), each k -> (n, k)."""
    ids, (layer, head) = tokenize(texts()[0].text, None), HEAD
    read = encode(ids)
    q, k, n = read.q[layer, head], read.k[layer, head], len(ids)
    slots = {str(size): windows(torch.tensor([n]), size, n)[0] @ k for size in SLOTS}
    return {"exact": read.weights[layer, head]} | {size: attention_weights(q, s) for size, s in slots.items()}


def shaded(weights: Tensor) -> Tensor:
    """Weights as whole numbers below SHADES, the largest of which is for the highest percent of weights."""
    limit = weights.flatten().quantile(0.99)
    return ((weights / limit).clamp(max=1) * (SHADES - 1)).round().byte()


def recorded() -> dict[str, Any]:
    """What the page shows before anything is loaded; "scores" of way, question, sentence, in 1/10,000."""
    one = texts()[0]
    ways = {way: cosines[:ON_PAGE] for way, cosines in scores(0).items() if way not in CONTROLS}
    return {
        "sentences": sentences(one.text),
        "spans": spans(one.text),
        "tokens": [vocabulary()[i] for i in tokenize(one.text, None)],
        "questions": {question: answer(one, question) for question in list(one.questions)[:ON_PAGE]},
        "scores": {way: (10_000 * cosines).round().int().tolist() for way, cosines in ways.items()},
        "shades": SHADES,
        "found": found(),
        "asked": asked(),
        "opening": OPENING,
    }
