"""Widget 8: a line of words, one of which is edited, and whose answers move. Drawn by leak_explorer.js."""

from functools import cache

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, packed
from linformer_from_scratch.course.widgets.projection_explorer import stored_head
from linformer_from_scratch.pretrained import stored_tokens

HEAD, WORDS, SLOTS = "4.2", 12, 4  # the story's first sentence, behind [CLS]
WAYS = "exact attention with a causal mask", f"{SLOTS} slots under a causal mask"


class LeakExplorer(LiveWidget):
    """How far each answer of a head moves when a word gets another's key and value: exactly, and by slots."""

    title = "One word is edited: whose answers move?"
    controls = ("token",)

    token = traitlets.Int(9, min=1, max=WORDS).tag(sync=True)

    def __init__(self, **start):
        q, k, v, others, E, F = numbers()
        data = {"qkv": torch.stack([q, k, v]), "others": others, "E": E, "F": F}
        facts = {"tokens": stored_tokens("story")[1 : 2 * WORDS + 1], "ways": WAYS}
        super().__init__(facts, {name: packed(array, "float16") for name, array in data.items()}, **start)

    @property
    def moved(self) -> dict[str, Tensor]:
        """Way -> ‖change of each answer‖ as a share of the answer, (WORDS,)."""
        q, k, v, others, E, F = numbers()
        here = torch.arange(WORDS)[:, None] == self.token - 1
        edited, answers = [torch.where(here, *pair) for pair in zip(others, (k, v), strict=True)], []
        for keys, values in ((k, v), edited):
            slots = scaled_dot_product_attention(q, E @ keys, F @ values, mask(SLOTS))
            answers.append((scaled_dot_product_attention(q, keys, values, mask(WORDS)), slots))
        pairs = zip(*answers, strict=True)
        far = ((after - before).norm(dim=-1) / before.norm(dim=-1) for before, after in pairs)
        return dict(zip(WAYS, far, strict=True))

    def _words(self) -> str:
        at, tokens = self.token - 1, self.facts["tokens"]
        exact, slots = (f"{int((far[:at] > 1e-4).sum())} of the {at}" for far in self.moved.values())
        return (
            f"“{tokens[at]}” becomes “{tokens[at + WORDS]}”. "
            f"Before it {exact} answers move in exact attention, and {slots} through slots."
        )

    def _figure(self) -> stills.Figure:
        at, names, moved = self.token - 1, self.facts["tokens"][:WORDS], self.moved
        highest = max(far.max().item() for far in moved.values())
        shown = {way: stills.moved(far, at, highest, way, names) for way, far in moved.items()}
        return stills.board([[way] for way in WAYS], shown, (9, 5))


def mask(m: int) -> Tensor:
    """Which of m slots, or tokens, each word may attend to: those that begin no later, (WORDS, m)."""
    return torch.arange(m) * WORDS <= torch.arange(WORDS)[:, None] * m


@cache
def numbers() -> tuple[Tensor, ...]:
    """Queries, keys, values (WORDS, d); keys and values of the words behind them; E, F (SLOTS, WORDS)."""
    head = stored_head(HEAD)
    (q, _), (k, other_k), (v, other_v) = (of[1 : 2 * WORDS + 1].split(WORDS) for of in head[:3])
    E, F = (mixer[:, 1 : WORDS + 1] for mixer in head.learned[SLOTS])
    return q, k, v, torch.stack([other_k, other_v]), E, F
