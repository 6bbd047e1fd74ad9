"""Texts to vectors: what a sentence encoder is loaded for (Reimers and Gurevych 2019, Sentence-BERT)."""

import os
import warnings
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.pretrained.tokens import tokenize, unknown_id
from linformer_from_scratch.pretrained.weights import D_MODEL, MAX_TOKENS

MARKS = 2  # tokens of every text that are not its own: [CLS] and [SEP]
PATIENCE = 2.0  # seconds before a bar is shown
NO_TEXTS = str | bytes | Mapping | AbstractSet  # though they can be gone through

if hasattr(os, "register_at_fork"):  # PyTorch's threads do not survive a fork: who asks them waits for ever
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


class TextEncoder(nn.Module):
    """A module that gives ids of texts their vectors by `embed`; with this, it reads the texts themselves."""

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """A unit vector a text.

        Shape: ids (batch, n), padding_mask (batch, n), True = a real token -> (batch, 384)
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what the vector of a text is")

    @torch.no_grad()
    def encode(
        self,
        texts: str | Iterable[str],
        batch_size: int = 32,
        progress: bool | None = None,
        truncate: bool = False,
        window: int | None = None,
    ) -> Tensor:
        """Unit vectors of texts, in their order, on the CPU: their dot products are cosines.

        Args:
            texts: one, or several in a list, an array, or whatever else gives them one after another.
            batch_size: texts that go through the network together; those of like length do.
            progress: show a bar; by default only where it takes several batches and some seconds.
            truncate: read the beginning of a text of more than 512 tokens; a warning counts the rest.
            window: cut every text of more tokens than this, its two marks not counted, into pieces of at most
                as many; its vector is the mean of theirs, scaled to length one.

        Shape: one text -> (384,), several -> (texts, 384)
        Raises: ValueError if a text is no string or holds no token, if one is too long and nothing says what
            to do with it, or if batch_size or window is out of its range; as model_file.
        """
        check_size("batch_size", batch_size)
        if not isinstance(truncate, bool):
            raise ValueError(f"truncate is {shown(truncate)}, expected True or False")
        if window is not None:
            check_window(window, truncate)
        named = {"the text": texts} if isinstance(texts, str) else numbered(texts)
        ids = read(named)
        warn_of_unknown(ids)
        pieces = [cut(name, some, window, truncate) for name, some in ids.items()]
        warn_of_lost(pieces)
        owners = torch.tensor(
            [i for i, (some, _) in enumerate(pieces) for _ in some], device="cpu", dtype=torch.long
        )
        vectors = self._embed([piece for some, _ in pieces for piece in some], batch_size, progress)
        means = functional.normalize(
            vectors.new_zeros(len(pieces), D_MODEL).index_add(0, owners, vectors), dim=-1
        )
        return means[0] if isinstance(texts, str) else means

    def _embed(self, pieces: list[Tensor], batch_size: int, progress: bool | None) -> Tensor:
        """Vectors of ids, in their order; the longest go first, so that what does not fit fails at once."""
        order = sorted(range(len(pieces)), key=lambda i: -len(pieces[i]))
        found = torch.empty(len(pieces), D_MODEL, dtype=torch.float32, device="cpu")
        device = next(self.parameters()).device
        delay, once = (PATIENCE, len(pieces) <= batch_size) if progress is None else (0.0, False)
        with tqdm(total=len(pieces), unit="text", delay=delay, disable=once or progress is False) as bar:
            for start in range(0, len(order), batch_size):
                some = order[start : start + batch_size]
                ids, mask = padded([pieces[i] for i in some])
                found[some] = self.embed(ids.to(device), mask.to(device)).float().cpu()
                bar.update(len(some))
        return found


def numbered(texts: Iterable[str]) -> dict[str, str]:
    """Texts by the names that errors call them."""
    one_after_another = isinstance(texts, Iterable) and getattr(texts, "shape", (1,)) != ()
    if isinstance(texts, NO_TEXTS | Tensor) or hasattr(texts, "columns") or not one_after_another:
        raise ValueError(f"expected a text or a list of texts, got {type(texts).__name__} {shown(texts)}")
    return {f"texts[{i}]": text for i, text in enumerate(texts)}


def read(named: dict[str, str]) -> dict[str, Tensor]:
    """Ids of every text, all of them."""
    found = {}
    for name, text in named.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} is {shown(text)}, expected a string")
        found[name] = tokenize(text, max_tokens=None)
        if len(found[name]) == MARKS:
            raise ValueError(f"{name} is {shown(text)}: it holds no token, expected at least one")
    return found


def cut(name: str, ids: Tensor, window: int | None, truncate: bool) -> tuple[list[Tensor], int]:
    """A text's ids in pieces that the network can take, and how many tokens were left out."""
    if window is not None:
        return chunks(ids, window), 0
    if len(ids) <= MAX_TOKENS:
        return [ids], 0
    if not truncate:
        raise ValueError(
            f"{name} has {len(ids):,} tokens, expected at most {MAX_TOKENS}; pass truncate=True to read its "
            f"beginning, or window={MAX_TOKENS - MARKS} for the mean of its pieces"
        )
    return [torch.cat([ids[: MAX_TOKENS - 1], ids[-1:]])], len(ids) - MAX_TOKENS


def chunks(ids: Tensor, window: int) -> list[Tensor]:
    """Pieces of nearly equal length of at most `window` tokens, each between [CLS] and [SEP].

    Shape: ids (..., n), [CLS] and [SEP] among them -> several (..., at most window + 2)
    """
    first, body, last = ids[..., :1], ids[..., 1:-1], ids[..., -1:]
    count = -(-body.size(-1) // window)
    return [torch.cat([first, part, last], dim=-1) for part in body.tensor_split(count, dim=-1)]


def padded(pieces: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Ids side by side, and which of them are real. Shape: (batch, n) each, n that of the longest"""
    lengths = torch.tensor([len(piece) for piece in pieces], device="cpu")
    ids = nn.utils.rnn.pad_sequence(pieces, batch_first=True)
    return ids, torch.arange(ids.size(1), device=ids.device) < lengths[:, None]


def warn_of_unknown(named: dict[str, Tensor]) -> None:
    """Say how many texts hold nothing that the vocabulary knows: all of one length get the same vector."""
    count = sum(set(ids[1:-1].tolist()) == {unknown_id()} for ids in named.values())
    if count:
        warnings.warn(
            f"{count} of {len(named)} texts hold no word that the vocabulary knows, only [UNK]; their "
            "vectors say nothing of them",
            stacklevel=4,
        )


def warn_of_lost(pieces: list[tuple[list[Tensor], int]]) -> None:
    """Say how much of how many texts was left out."""
    lost = [count for _, count in pieces if count]
    if lost:
        warnings.warn(
            f"{len(lost)} of {len(pieces)} texts have more than {MAX_TOKENS} tokens: the last {sum(lost):,} "
            f"of their tokens were left out, {max(lost):,} of one text at most",
            stacklevel=4,
        )


def check_window(window: int, truncate: bool) -> None:
    """Raise ValueError unless pieces of a text can have that many tokens."""
    check_size("window", window)
    if window > MAX_TOKENS - MARKS:
        raise ValueError(f"window is {window}, expected at most {MAX_TOKENS - MARKS}: two more are marks")
    if truncate:
        raise ValueError(f"got truncate=True and window={window}, expected one of the two")


def shown(value: object) -> str:
    """A value as an error shows it, not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:40]} …"
