"""Token ids to batches. A batch is a function of a seed and a step: the same two give the same batch."""

import hashlib
import operator
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.random_state import integers, permutations, uniform
from linformer_from_scratch.data.vocabulary import END, MASK, PAD, SPECIAL, Vocabulary

IGNORE = -100  # a target that the loss leaves out, as PyTorch's cross entropy does
HELD_OUT = 0.2  # share of documents
MASKED, REPLACED = 0.15, (0.8, 0.9)  # Devlin et al. 2019, section 3.1: 15 %; below .8 mask, below .9 random


def held_out(titles: Iterable[str], share: float = HELD_OUT) -> list[str]:
    """Titles of the documents to keep for validation: drawn by their names, so the same on every machine.

    About this share of them; at least one is held out and at least one is left to learn from.

    Raises: ValueError if there are fewer than two.
    """
    titles = list(titles)
    places = {title: _place(title) for title in titles}
    if len(places) < 2:
        raise ValueError(f"{len(places)} documents cannot be split, expected at least 2")
    first, *_, last = sorted(places, key=lambda title: (places[title], title))
    places[first], places[last] = 0.0, 1.0  # a small corpus has both sides too
    return [title for title in titles if places[title] < share]


def _place(title: str) -> float:
    """A number from 0 to 1 by the title alone; é may be one letter or, as macOS writes it, two."""
    # some file names are not UTF-8
    name = unicodedata.normalize("NFC", title).encode(errors="surrogatepass")
    return int(hashlib.sha256(name).hexdigest()[:8], 16) / 2**32


def split(documents: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Documents to learn from and those held out, each in their original order.

    Raises: as held_out.
    """
    titles = set(held_out(documents))
    learned = {title: text for title, text in documents.items() if title not in titles}
    return learned, {title: text for title, text in documents.items() if title in titles}


def stream(texts: Iterable[str], vocabulary: Vocabulary) -> Tensor:
    """All texts as one row of token ids, END after each. Shape: (tokens,), on the CPU."""
    ids = [i for text in texts for i in (*vocabulary.encode(text), END)]
    return torch.tensor(ids, dtype=torch.long, device="cpu")


def generator_of(seed: int, step: int) -> torch.Generator:
    """A random generator for each pair of integers of any size and sign.

    PyTorch's generator reads 32 bits of a seed, so both are mixed into 32 bits. Among 100,000 pairs about one
    coincides with another by chance.
    """
    for name, number in (("seed", seed), ("step", step)):
        if isinstance(number, bool):
            raise ValueError(f"{name} is {number}, expected an integer")
    pair = operator.index(seed), operator.index(step)
    mixed: int | tuple[int, int] = pair
    if not all(0 <= number < 2**32 for number in pair):  # numpy would join the words of the two
        mixed = int.from_bytes(hashlib.sha256(f"{pair}".encode()).digest())
    (bits,) = np.random.SeedSequence(mixed).generate_state(1)
    return torch.Generator().manual_seed(int(bits))


def mask_tokens(ids: Tensor, vocab_size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Hide 15 % of every row: (inputs, targets) for masked-language modelling.

    Devlin et al. 2019, section 3.1: of the chosen tokens 80 % become MASK, 10 % a random token, 10 % stay.
    Targets are the tokens at chosen places, IGNORE elsewhere. Every row has round(0.15 n) chosen
    places, and at least one.

    Shape: ids (batch, n) -> two of (batch, n)
    Raises: ValueError if the vocabulary has only the special tokens.
    """
    vocab_size = check_size("vocab_size", vocab_size, least=len(SPECIAL) + 1)
    order = permutations(generator, *ids.shape)
    fate, random = uniform(generator, *ids.shape), integers(generator, len(SPECIAL), vocab_size, *ids.shape)
    order, fate, random = (drawn.to(ids.device) for drawn in (order, fate, random))
    chosen = order < max(1, round(MASKED * ids.size(-1)))
    replaced = torch.where(fate < REPLACED[0], MASK, torch.where(fate < REPLACED[1], random, ids))
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


class MaskedBatches:
    """Windows of a stream, drawn at random and masked.

    Args:
        ids: a stream of tokens.
        seq_len: tokens in a window, n.
        batch_size: windows in a batch.
        vocab_size: for the random tokens.
        seed: decides which windows and masks are drawn.

    Raises: ValueError if the stream is shorter than a window, or a window or a batch is empty.
    """

    def __init__(self, ids: Tensor, seq_len: int, batch_size: int, vocab_size: int, seed: int = 0):
        seq_len, batch_size = check_size("seq_len", seq_len), check_size("batch_size", batch_size)
        if len(ids) < seq_len:
            raise ValueError(f"the text has {len(ids)} tokens, expected at least seq_len={seq_len}")
        self.windows = ids.unfold(0, seq_len, 1)  # (tokens - seq_len + 1, seq_len), a view
        self.batch_size, self.vocab_size, self.seed = batch_size, vocab_size, seed

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of a step. Shape: two of (batch_size, seq_len)."""
        generator = generator_of(self.seed, step)
        starts = integers(generator, 0, len(self.windows), self.batch_size)
        return mask_tokens(self.windows[starts], self.vocab_size, generator)


class LabelledBatches:
    """Labelled texts, shuffled anew in every epoch.

    Args:
        ids: token ids of every text, padded with PAD to one length.
        labels: the class of every text.
        batch_size: texts in a batch; the last batch of an epoch may hold fewer.
        seed: decides the order.

    Shape: ids (texts, n), labels (texts,)
    Raises: ValueError if there is no text, not one label for each, or batch_size is not positive.
    """

    def __init__(self, ids: Tensor, labels: Tensor, batch_size: int, seed: int = 0):
        batch_size = check_size("batch_size", batch_size)
        if not 0 < len(ids) == len(labels):
            raise ValueError(f"got {len(ids)} texts and {len(labels)} labels; need equal, non-zero counts")
        self.ids, self.labels, self.batch_size, self.seed = ids, labels, batch_size, seed

    def __len__(self) -> int:
        return -(-len(self.ids) // self.batch_size)  # batches in an epoch

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and labels of a step. Shape: (batch_size, n), (batch_size,)."""
        epoch, i = divmod(step, len(self))
        draw = generator_of(self.seed, epoch)
        order = torch.randperm(len(self.ids), generator=draw, device=draw.device)
        texts = order[i * self.batch_size : (i + 1) * self.batch_size]
        return self.ids[texts], self.labels[texts]


def pad(rows: Sequence[Sequence[int]], seq_len: int) -> Tensor:
    """Rows as one tensor: PAD after shorter ones, longer ones cut. Shape: (rows, seq_len), on the CPU."""
    seq_len = check_size("seq_len", seq_len, least=0)
    ids = torch.full((len(rows), seq_len), PAD, device="cpu")
    for padded, row in zip(ids, rows, strict=True):
        cut = padded.new_tensor(row[:seq_len])
        padded[: len(cut)] = cut
    return ids
