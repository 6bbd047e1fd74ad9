"""Texts to vectors: the purpose of a sentence encoder (Reimers and Gurevych 2019, Sentence-BERT)."""

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
from linformer_from_scratch.pretrained.tokens import tokenize, tokenizer
from linformer_from_scratch.pretrained.weights import D_MODEL, MAX_TOKENS

MARKS = 2  # tokens that every text has besides its own: [CLS] and [SEP]
PATIENCE = 2.0  # seconds before a progress bar is shown

if hasattr(os, "register_at_fork"):  # PyTorch's threads do not survive a fork: waiting for them never ends
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


class TextEncoder(nn.Module):
    """A module that maps token ids to vectors by `embed`; this class lets it read the texts themselves."""

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """A unit vector per text.

        Shape: ids (batch, n), padding_mask (batch, n), True = a real token -> (batch, 384)
        """
        raise NotImplementedError(f"{type(self).__name__} does not define embed")

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
            texts: one text, or several in a list, an array or any other iterable.
            batch_size: texts that go through the network together; texts of similar length are grouped.
            progress: whether to show a bar; by default only for several batches that take some seconds.
            truncate: read the beginning of a text of more than 512 tokens; a warning counts the rest.
            window: cut every text of more tokens than this, [CLS] and [SEP] not counted, into pieces of at
                most this length; its vector is the mean of theirs, scaled to length one.

        Shape: one text -> (384,), several -> (texts, 384)
        Raises: ValueError if a text is not a string or has no token, if one is too long and neither truncate
            nor window is given, or if batch_size or window is out of range; as model_file.
        """
        check_size("batch_size", batch_size)
        if window is not None:
            check_size("window", window, 1, MAX_TOKENS - MARKS)
        if window is not None and truncate:
            raise ValueError(f"got truncate=True and window={window}, expected one of the two")
        ids = tokenize_all({"the text": texts} if isinstance(texts, str) else named(texts))
        pieces = [cut(name, text_ids, window, truncate) for name, text_ids in ids.items()]
        warn_of_what_is_left_out(ids, truncate)
        vectors = self._embed([piece for own in pieces for piece in own], batch_size, progress)
        sums = [own.sum(dim=0) for own in vectors.split([len(own) for own in pieces])]
        means = functional.normalize(torch.stack(sums), dim=-1) if sums else vectors
        return means[0] if isinstance(texts, str) else means

    def _embed(self, pieces: list[Tensor], batch_size: int, progress: bool | None) -> Tensor:
        """Vectors of ids, in their order; the longest go first, so that a lack of memory shows at once."""
        order = sorted(range(len(pieces)), key=lambda i: -len(pieces[i]))
        vectors = torch.empty(len(pieces), D_MODEL, dtype=torch.float32, device="cpu")
        device = next(self.parameters()).device
        hidden = len(pieces) <= batch_size if progress is None else not progress
        delay = PATIENCE if progress is None else 0.0
        with tqdm(total=len(pieces), unit="text", delay=delay, disable=hidden) as bar:
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                some = [pieces[i] for i in batch]
                ids = nn.utils.rnn.pad_sequence(some, batch_first=True)
                mask = nn.utils.rnn.pad_sequence([torch.ones_like(i).bool() for i in some], batch_first=True)
                vectors[batch] = self.embed(ids.to(device), mask.to(device)).float().cpu()
                bar.update(len(batch))
        return vectors


def named(texts: Iterable[str]) -> dict[str, str]:
    """Texts by the names that errors use for them."""
    if isinstance(texts, Mapping | AbstractSet) or hasattr(texts, "columns"):  # a table gives no rows
        raise ValueError(f"expected a text or a list of texts, got {type(texts).__name__} {shown(texts)}")
    return {f"texts[{i}]": text for i, text in enumerate(texts)}


def tokenize_all(texts: dict[str, str]) -> dict[str, Tensor]:
    """All ids of every text."""
    ids = {}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} is {shown(text)}, expected a string")
        ids[name] = tokenize(text, max_tokens=None)
        if len(ids[name]) == MARKS:
            raise ValueError(f"{name} is {shown(text)}: it has 0 tokens, expected at least 1")
    return ids


def cut(name: str, ids: Tensor, window: int | None, truncate: bool) -> list[Tensor]:
    """A text's ids in pieces that the network can take."""
    if window is not None:
        return chunks(ids, window)
    if len(ids) > MAX_TOKENS and not truncate:
        raise ValueError(
            f"{name} has {len(ids):,} tokens, expected at most {MAX_TOKENS}; pass truncate=True to read its "
            f"beginning, or window={MAX_TOKENS - MARKS} for the mean of its pieces"
        )
    return [ids if len(ids) <= MAX_TOKENS else torch.cat([ids[: MAX_TOKENS - 1], ids[-1:]])]


def chunks(ids: Tensor, window: int) -> list[Tensor]:
    """Pieces of nearly equal length of at most `window` tokens, each between [CLS] and [SEP].

    Shape: ids (..., n), [CLS] and [SEP] among them -> several (..., at most window + 2)
    """
    first, body, last = ids[..., :1], ids[..., 1:-1], ids[..., -1:]
    count = -(-body.size(-1) // check_size("window", window))
    return [torch.cat([first, part, last], dim=-1) for part in body.tensor_split(count, dim=-1)]


def warn_of_what_is_left_out(ids: dict[str, Tensor], truncate: bool) -> None:
    """Warn of texts without a known word, whose vectors are alike, and of tokens that are cut off."""
    unknown = tokenizer().token_to_id("[UNK]")
    count = sum(set(of_text[1:-1].tolist()) == {unknown} for of_text in ids.values())
    if count:
        warnings.warn(
            f"{count} of {len(ids)} texts hold no word that the vocabulary knows, only [UNK]; their "
            "vectors say nothing about them",
            stacklevel=4,
        )
    lost = [len(of_text) - MAX_TOKENS for of_text in ids.values() if len(of_text) > MAX_TOKENS]
    if truncate and lost:
        warnings.warn(
            f"{len(lost)} of {len(ids)} texts have more than {MAX_TOKENS} tokens: the last {sum(lost):,} "
            f"of their tokens were left out, at most {max(lost):,} of one text",
            stacklevel=4,
        )


def shown(value: object) -> str:
    """A value as an error shows it, not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:40]} …"
