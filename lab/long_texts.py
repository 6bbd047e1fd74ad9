"""The runs of chapter 12 on long texts: pages of 1,024 to 8,192 tokens, looked up by what they are about.

What is fitted is kept in build/long, and a fit that was stopped goes on. The manuals must be installed, see
pages.py.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional

from lab.experiment import BUILD, Experiment, every
from lab.lengths import int8
from lab.pages import Page, split_pages
from linformer_from_scratch.benchmark import median_seconds, peak_bytes
from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.sliding_window import window_and_global_attention
from linformer_from_scratch.pretrained import MAX_TOKENS, NUM_HEADS, NUM_LAYERS, sentence_encoder, tokenize
from linformer_from_scratch.pretrained.adapting import adapt
from linformer_from_scratch.pretrained.capstone import ChunkEncoder, embed_all
from linformer_from_scratch.pretrained.contrastive import (
    ContrastiveLoss,
    PageBatches,
    Searched,
    cosines_of,
    ranks_of,
)
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.low_rank_updates import learned, load_updates
from linformer_from_scratch.pretrained.network import SentenceEncoder, extend_positions, pool
from linformer_from_scratch.pretrained.texts import MARKS, chunks
from linformer_from_scratch.pretrained.weights import D_MODEL
from linformer_from_scratch.training import Config

FITTED = BUILD / "long"
LENGTHS = (1024, 2048, 4096, 8192)
FITTED_ON = LENGTHS[:2]
LONGEST = LENGTHS[-1]
KINDS = ("title", "paragraph")  # of query
QUERY_WORDS, QUERY_TOKENS = 12, 64  # at least, and at most
PAGES = 150  # of a length, at most
CHUNK = 256 - MARKS
WINDOW = 64  # tokens on either side
READOUT = 64  # tokens of which a vector is the mean, where a page has several
RANK = sentence_encoder.RANK
CONFIG = Config(steps=100, learning_rate=5e-4, warmup=10, weight_decay=0.0, evaluate_every=10)
SEEDS = (0, 1, 2)
POSITIONS = "repeated"  # see 12_positions
MEAN_CHUNK, BEST_CHUNK, INT8, WORDS = "mean of chunks", "best of chunks", "exact, int8", "counting words"
SILENT = "no attention"
CHUNKED = (MEAN_CHUNK, BEST_CHUNK)
BASES = {BEST_CHUNK: MEAN_CHUNK, INT8: "exact"}  # fitted as that one is


class Parts(nn.Module):
    """A vector for every READOUT tokens of a text, in place of a single one: the best of them is its answer.

    Args: encoder: reads the text, whole or in chunks.
    """

    def __init__(self, encoder: SentenceEncoder | ChunkEncoder):
        super().__init__()
        self.encoder = encoder

    def embed(self, ids: Tensor) -> Tensor:
        """Unit vectors. Shape: ids (batch, n) -> (batch, parts, 384)"""
        if isinstance(self.encoder, ChunkEncoder):
            outputs = [self.encoder.encoder(chunk) for chunk in chunks(ids, self.encoder.chunk)]
        else:
            outputs = [self.encoder(ids)]
        parts = [part for some in outputs for part in some.tensor_split(-(-some.size(1) // READOUT), dim=1)]
        return torch.stack([pool(part) for part in parts], dim=1)


def in_parts(way: str) -> Parts:
    """An encoder of WAYS that gives several vectors."""
    return Parts(WAYS[way]())


class FirstTokens(nn.Module):
    """The beginning of a text, read exactly: what an encoder of 512 tokens does with a longer one."""

    def __init__(self, encoder: SentenceEncoder):
        super().__init__()
        self.encoder = encoder

    def embed(self, ids: Tensor) -> Tensor:
        """Unit vectors. Shape: ids (batch, n) -> (batch, 384)"""
        return self.encoder.embed(torch.cat([ids[:, : MAX_TOKENS - 1], ids[:, -1:]], dim=1))


def sliding_encoder() -> SentenceEncoder:
    """Each token reads WINDOW neighbours on either side and [CLS], which reads all."""
    attend = partial(window_and_global_attention, window=WINDOW)
    return SentenceEncoder(EfficientAttention(D_MODEL, NUM_HEADS, attend) for _ in range(NUM_LAYERS))


def lengthened(encoder: SentenceEncoder) -> SentenceEncoder:
    """An encoder with positions for the longest text."""
    return extend_positions(encoder, LONGEST, POSITIONS)


WAYS: dict[str, Callable[[], Any]] = {
    "exact": lambda: lengthened(sentence_encoder.full_encoder()),
    "128 slots": lambda: lengthened(window_encoder(128)),
    "256 slots": lambda: lengthened(window_encoder(256)),
    "128 slots, last exact": lambda: lengthened(window_encoder(128, (NUM_LAYERS - 1,))),
    "one window": lambda: lengthened(window_encoder(3)),  # its mean, and [CLS] and [SEP]
    "sliding window": lambda: lengthened(sliding_encoder()),
    SILENT: lambda: lengthened(sentence_encoder.silent_encoder()),
    MEAN_CHUNK: lambda: ChunkEncoder(sentence_encoder.full_encoder(), CHUNK),
    "first 512 tokens": lambda: FirstTokens(sentence_encoder.full_encoder()),
}
IN_PARTS = [f"{way}, best part" for way in ("exact", "128 slots", MEAN_CHUNK, SILENT)]
WAYS |= {way: partial(in_parts, way.removesuffix(", best part")) for way in IN_PARTS}


@cache
def searched(side: int, n: int) -> Searched:
    """The first n tokens of every page that has as many, and the vectors of its queries.

    The title stands in no text, nor does the paragraph that is asked for: one at a random place of the n
    tokens, of which the query holds the first QUERY_TOKENS.

    Args: side: 0 for pages to learn from, 1 for those held out.
    """
    rows, queries = [], []
    for page in long_pages(side, n):
        paragraph, ids = without_a_paragraph(page, n)
        rows.append(ids)
        queries.append((tokenize(page.title, QUERY_TOKENS), tokenize(paragraph, QUERY_TOKENS)))
    teacher = sentence_encoder.full_encoder()
    kinds = zip(*queries, strict=True)
    vectors = [torch.cat([embed_all(teacher, ids[None]) for ids in kind]) for kind in kinds]
    return Searched(torch.stack(rows), torch.stack(vectors))


@cache
def long_pages(side: int, n: int) -> list[Page]:
    """Pages that have n tokens though a paragraph is taken out; PAGES of them at most, spread over all."""
    long_enough = [page for page in split_pages()[side] if without_a_paragraph(page, n)[1].numel()]
    if side == 0 or len(long_enough) <= PAGES:
        return long_enough
    return [long_enough[i * len(long_enough) // PAGES] for i in range(PAGES)]


@cache
def tokens_of(paragraph: str) -> Tensor:
    """Without [CLS] and [SEP]."""
    return tokenize(paragraph, None)[1:-1]


def without_a_paragraph(page: Page, n: int) -> tuple[str, Tensor]:
    """A paragraph from a page's first n tokens, and the first n of the rest; none if it has fewer."""
    marks, paragraphs = tokenize("", None), [tokens_of(text) for text in page.paragraphs]
    starts, begun = [], 0
    for i, ids in enumerate(paragraphs):
        if begun < n - MARKS and len(page.paragraphs[i].split()) >= QUERY_WORDS:
            starts.append(i)
        begun += len(ids)
    draw = int(hashlib.sha256(f"{page.name} {n}".encode()).hexdigest()[:8], 16)
    if not starts:
        return "", marks[:0]
    asked = starts[draw % len(starts)]
    body = torch.cat([marks[:0], *(ids for i, ids in enumerate(paragraphs) if i != asked)])[: n - MARKS]
    if len(body) < n - MARKS:
        return "", marks[:0]
    return page.paragraphs[asked], torch.cat([marks[:1], body, marks[1:]])


def fit(way: str, seed: int) -> None:
    """Fit an encoder to its pages' queries, and keep what it learned."""
    by_length = {n: searched(0, n) for n in FITTED_ON}
    model, path = WAYS[way](), fitted_path(way, seed)
    loss, batches = ContrastiveLoss(by_length), PageBatches(by_length, seed)
    adapt(model, loss, batches, RANK, replace(CONFIG, seed=seed), path.with_suffix(""))
    atomic_write(path, save(learned(model)))


def fitted_path(way: str, seed: int) -> Path:
    """The file of what was learned."""
    return FITTED / f"{way} {seed}.safetensors"


def encoder(way: str, seed: int | None) -> Any:
    """An encoder, fitted with a seed or as it comes; fitted now if its file is not there."""
    model = WAYS[way]()
    if seed is not None:
        if not fitted_path(way, seed).exists():
            fit(way, seed)
        load_updates(model, RANK, load_file(fitted_path(way, seed)))
    return model.eval()


def look_up(way: str, n: int, seed: int | None = None) -> dict:
    """At which place each page is found, by each kind of query and by the long page before it.

    Args: seed: of the fit; without one, the encoder as it comes.
    """
    return counted(n) if way == WORDS else ranks_by_kind(way, encoder(BASES.get(way, way), seed), n)


@torch.no_grad()
def ranks_by_kind(way: str, model: Any, n: int) -> dict:
    """Ranks among the held-out pages of n tokens."""
    pages = searched(1, n)
    if way == BEST_CHUNK:
        parts = [embed_all(model.encoder, part, 1) for part in chunks(pages.ids, model.chunk)]
        found = torch.stack(parts, dim=1)
    else:
        model = int8(model) if way == INT8 else model
        found = embed_all(model, pages.ids, 1)
    own, scores = torch.arange(len(pages.ids)), cosines_of(found, pages.queries).mT  # (kinds, queries, pages)
    ranks = {kind: ranks_of(some, own).tolist() for kind, some in zip(KINDS, scores, strict=True)}
    means = functional.normalize(found.mean(dim=1), dim=-1) if found.dim() == 3 else found
    return ranks | {"next page": following_ranks(cosines_of(found, means).mT, n)}


def counted(n: int) -> dict:
    """At which place each page is found by counting words, as look_up."""
    pages, ranks = searched(1, n).ids, {}
    queries = [(page.title, without_a_paragraph(page, n)[0]) for page in long_pages(1, n)]
    for kind, texts in zip(KINDS, zip(*queries, strict=True), strict=True):
        asked = [tokenize(text, QUERY_TOKENS)[1:-1] for text in texts]
        ranks[kind] = ranks_of(bm25(asked, pages), range(len(asked))).tolist()
    return ranks | {"next page": following_ranks(bm25(list(pages), pages), n)}


def bm25(asked: Sequence[Tensor], pages: Tensor) -> Tensor:
    """How well pages of one length fit each query, by the rarity of the tokens that they share.

    Robertson and Zaragoza 2009, equation 3.15, with k1 = 1.2; pages are equally long, so b has no say. Each
    token of a query counts once.

    Shape: asked: tokens of each query, pages (pages, n) -> (queries, pages)
    """
    vocabulary = int(pages.max()) + 1
    counts = torch.stack([torch.bincount(ids, minlength=vocabulary) for ids in pages]).double()
    holding = (counts > 0).sum(dim=0)  # pages that hold a token
    rarity = (1 + (len(pages) - holding + 0.5) / (holding + 0.5)).log()
    weights = rarity * counts * 2.2 / (counts + 1.2)
    return torch.stack([weights[:, ids[ids < vocabulary].unique()].sum(dim=1) for ids in asked])


def following_ranks(scores: Tensor, n: int) -> list[int]:
    """At which place each page finds the page after it; it does not look for itself."""
    following = neighbours(n)
    others = scores.fill_diagonal_(-2.0)[following]
    return ranks_of(others, following + 1).tolist()


def neighbours(n: int) -> Tensor:
    """Held-out pages after which comes one of the same manual."""
    manuals = [page.manual for page in long_pages(1, n)]
    return torch.tensor([i for i in range(len(manuals) - 1) if manuals[i] == manuals[i + 1]])


def positions(how: str, n: int) -> dict:
    """Exact attention with positions made in one of two ways, on pages to learn from; nothing is fitted."""
    model = extend_positions(sentence_encoder.full_encoder(), n, how).eval()
    pages = searched(0, n)
    some = torch.arange(0, len(pages.ids), 4)
    vectors = embed_all(model, pages.ids[some], 1)
    return {
        kind: ranks_of(queries @ vectors.mT, torch.arange(len(some))).tolist()
        for kind, queries in zip(KINDS, pages.queries[:, some], strict=True)
    }


@torch.no_grad()
def costs(n: int) -> dict:
    """Of one text of n tokens: seconds of every way in shuffled turns, and bytes at the peak."""
    ids = searched(1, n).ids[:1]
    models = {way: make().eval() for way, make in WAYS.items()}
    models[INT8] = int8(models["exact"])
    calls = {way: partial(model.embed, ids) for way, model in models.items()}
    seconds = median_seconds(calls, rounds=9)
    return {
        "seconds": {way: round(s, 4) for way, s in seconds.items()},
        "bytes": {way: peak_bytes(call) for way, call in calls.items()},
    }


MAIN = ("exact", "128 slots", *CHUNKED)
OTHERS = every(way=MAIN, n=LENGTHS[2:]) + every(way=["256 slots", "128 slots, last exact"], n=LENGTHS)
AS_THEY_COME = (*MAIN, INT8, "sliding window", "first 512 tokens")
UNFITTED = every(way=AS_THEY_COME, n=FITTED_ON) + every(way=[WORDS], n=LENGTHS)
PLACED = every(n=FITTED_ON, how=["repeated", "interpolated"])
FOUND = every(way=(*MAIN, "one window"), n=FITTED_ON)
PARTED = every(way=[*IN_PARTS, SILENT], n=FITTED_ON)  # and without attention
EXPERIMENTS = [
    Experiment("12_positions", "positions beyond 512: repeated, or interpolated", PLACED, positions),
    Experiment("12_long", "long pages looked up, encoders fitted to the queries", FOUND, look_up, SEEDS),
    Experiment("12_long_parts", "as 12_long, by the best of a page's parts", PARTED, look_up, SEEDS),
    Experiment("12_long_others", "as 12_long: other encoders and lengths", OTHERS, look_up, SEEDS[:1]),
    Experiment("12_long_unfitted", "long pages looked up by what needs no fitting", UNFITTED, look_up),
    Experiment("12_long_costs", "of long texts; let nothing else run", every(n=LENGTHS), costs, threads=2),
]
