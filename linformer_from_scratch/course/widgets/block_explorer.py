"""From E to DeepSeek-V4 and its successors: one text, edit by edit. Drawn by block_explorer.js."""

from functools import cache
from typing import Any, NamedTuple

import torch
import traitlets
from torch import Tensor
from torch.nn.functional import pad

from linformer_from_scratch.attention import attention_weights, causal_mask
from linformer_from_scratch.course.models import cards
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, menu, packed
from linformer_from_scratch.course.widgets.projection_explorer import HEADS
from linformer_from_scratch.descendants.blocks import compress_blocks, ended, masked_softmax
from linformer_from_scratch.descendants.choice import best_slots, index_scores, tokens_read
from linformer_from_scratch.efficient.sliding_window import window_mask
from linformer_from_scratch.pretrained import stored_heads, stored_tokens
from linformer_from_scratch.projections import MeanPooling

NAMES = "Linformer", "1 blocks", "2 a window", "3 content", "4 overlap, choice", "5 one tensor"
EDITS = {str(i): name for i, name in enumerate((*NAMES, "after V4: choose tokens"))}
SHOWN = slice(26, 50)  # of the story: from “bank.” to “would look.”
BLOCK, SMALL, WINDOW = 4, 2, 4  # tokens of a block, of a small one, of the window
TOP, BEST = 3, 1  # slots that are chosen, and blocks whose tokens are attended to
CHOOSING = cards()["GLM-5.3-Flash"].layers[-1].block  # tokens of such a block
ALL_HEADS, D_HEAD = 12, 32  # of MiniLM's layers


class Reading(NamedTuple):
    """What every query attends to in one state.

    slots: (n, slots), and tokens: (n, n): weights, which sum to one where there is anything to attend to.
    mix: what each slot is made of, (slots, n).
    scores: where slots only choose, how much a query wants each that has ended, its best being 1; else zeros.
    """

    slots: Tensor
    tokens: Tensor
    mix: Tensor
    scores: Tensor

    @property
    def effective(self) -> Tensor:
        """What each query takes from each token in the end, (n, n)."""
        return self.tokens + self.slots @ self.mix


class BlockExplorer(LiveWidget):
    """One sentence, and what a query of it attends to: slots, and tokens of its window, edit by edit."""

    title = "From E to the models of 2026, edit by edit"
    controls = ("edit", "head", "query")

    edit = menu(EDITS)
    head = menu(HEADS, opening="5.6")
    query = traitlets.Int(13, min=0, max=SHOWN.stop - SHOWN.start - 1).tag(sync=True)

    def __init__(self, **start):
        super().__init__({"tokens": tokens(), "memory": [memory(edit) for edit in EDITS]}, data(), **start)

    @property
    def reading(self) -> Reading:
        """What all queries attend to."""
        return reading(self.edit, self.head)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The parts of the reading, by name, and what it amounts to."""
        return self.reading._asdict() | {"effective": self.reading.effective}

    @property
    def error(self) -> float:
        """‖output − exact‖ / ‖exact‖ of the head, where exact is causal."""
        return errors(self.head)[[*EDITS].index(self.edit)].item()

    def _words(self) -> str:
        now, t = self.reading, self.query
        slots, near = now.slots[t], now.tokens[t]
        read = int((slots > 0).sum()), int((near > 0).sum())
        ahead = now.effective[t, t + 1 :].sum()
        return (
            f"“{tokens()[t]}” attends to {read[0]} slots ({slots.sum():.0%}) and {read[1]} tokens "
            f"({near.sum():.0%}); {ahead:.0%} goes to the future. The head is off by {self.error:.0%}. "
            f"Its layer keeps {memory(self.edit):,} numbers (exact: {memory('exact'):,})."
        )

    def _figure(self) -> stills.Figure:
        now, t, n = self.reading, self.query, len(tokens())
        slots: dict[str, Any] = {"note": "slots across", "tall": n / len(now.mix)}
        shown = {
            "exact": stills.heat_map(exact(self.head), "exact, causal", 1 / BLOCK, query=t),
            "slots": stills.heat_map(now.slots + now.scores, "slots", 1, query=t, **slots),
            "tokens": stills.heat_map(now.tokens, "tokens", 1 / BLOCK, query=t),
            "effective": stills.heat_map(now.effective, "what it amounts to", 1 / BLOCK, query=t),
        }
        return stills.board([[*shown]], shown, (13, 4), widths=(1, 1, 1, 1))


def tokens() -> list[str]:
    """The sentence."""
    return stored_tokens("story")[SHOWN]


def exact(head: str) -> Tensor:
    """Its causal map, (n, n)."""
    q, k, _ = _qkv(head)
    return attention_weights(q, k, causal_mask(len(q)))


@cache
def reading(edit: str, head: str) -> Reading:
    """See Reading. The gate of edit 3 is how well a token fits the mean query of the head."""
    q, k, _ = _qkv(head)
    n = len(q)
    if edit == "0":
        mix = MeanPooling(n, n // BLOCK)(torch.eye(n))
        return Reading(attention_weights(q, mix @ k), torch.zeros(n, n), mix, torch.zeros(n, len(mix)))
    small, near = edit in ("4", "5"), window_mask(n, WINDOW - 1, causal=True)
    block, units = _block(edit), torch.eye(n)  # a slot of unit vectors is what it is made of
    logits = (k @ q.mean(dim=0) / D_HEAD**0.5)[:, None].expand(n, n)
    if small:
        units, logits = (torch.cat([some, some], dim=-1) for some in (units, logits))
        mix = compress_blocks(units, torch.zeros(block), logits, overlap=True)
    else:
        mix = compress_blocks(units, torch.zeros(block), logits if edit in ("3", "6") else None)
    seen, shown = ended(n, block), torch.zeros(n, len(mix))
    wanted = index_scores(q[None, None], (mix @ k)[None, None], torch.ones(1, n, 1))[0]
    if small:
        seen = best_slots(wanted, TOP, seen)
    elif edit == "6":
        near = tokens_read(wanted, n, block, WINDOW, BEST)
        shown = wanted * seen / (wanted * seen).amax(dim=1, keepdim=True).clamp(min=1e-9)
        seen = torch.zeros_like(seen)
    near = near & (edit != "1")
    scores = q @ torch.cat([mix @ k, k]).mT / D_HEAD**0.5
    weights = masked_softmax(scores, torch.cat([seen, near], dim=-1))
    return Reading(weights[:, : len(mix)], weights[:, len(mix) :], mix, shown)


@cache
def errors(head: str) -> Tensor:
    """Of every state, Linformer's first."""
    *_, v = _qkv(head)
    wanted = exact(head) @ v
    outputs = torch.stack([reading(edit, head).effective @ v for edit in EDITS])
    return (outputs - wanted).norm(dim=(1, 2)) / wanted.norm()


def memory(edit: str) -> int:
    """Numbers that a layer of MiniLM's size keeps after the sentence, but for a block that has not ended."""
    n, of_a_token = len(tokens()), 2 * ALL_HEADS * D_HEAD
    if edit in ("exact", "0"):  # Linformer cannot write: it would need all tokens again
        return n * of_a_token
    slots = n // _block(edit)
    if edit == "6":  # one key of the index for a block, and all tokens
        return (slots + n) * D_HEAD
    return (slots + (0 if edit == "1" else WINDOW)) * (D_HEAD if edit == "5" else of_a_token)


def _block(edit: str) -> int:
    """Tokens of a block."""
    return {"4": SMALL, "5": SMALL, "6": CHOOSING}.get(edit, BLOCK)


def _qkv(head: str) -> tuple[Tensor, Tensor, Tensor]:
    layer, number = map(int, head.split("."))
    q, k, v, _ = stored_heads("story")[layer, number]
    return q[SHOWN], k[SHOWN], v[SHOWN]


@cache
def data() -> dict[str, Any]:
    """Of all heads and states; where there are fewer slots, the last are zeros."""
    readings = [reading(edit, head) for head in HEADS for edit in EDITS]
    most = max(len(some.mix) for some in readings)
    slots = torch.stack([pad(some.slots, (0, most - len(some.mix))) for some in readings])
    mixes = torch.stack([pad(some.mix, (0, 0, 0, most - len(some.mix))) for some in readings])
    return {
        "slots": packed(slots),
        "tokens": packed(torch.stack([some.tokens for some in readings])),
        "scores": packed(torch.stack([reading("6", head).scores for head in HEADS])),
        "mixes": packed(mixes),
        "exact": packed(torch.stack([exact(head) for head in HEADS])),
        "errors": packed(torch.stack([errors(head) for head in HEADS])),
        "counts": packed([len(reading(edit, "5.6").mix) for edit in EDITS], "int32"),
    }
