"""Widget 8: which outputs an edited token moves, and what an input uses of E. Drawn by length_explorer.js."""

from functools import cache
from typing import NamedTuple

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.attention import attention_weights, causal_mask
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import CannotDraw, LiveWidget, packed
from linformer_from_scratch.linformer import linformer_attention

SEQ_LEN, SLOTS, D = 24, 6, 32
MOST = SEQ_LEN + 4  # tokens that can be asked for: E has no columns for the last ones
CAUSAL, LINFORMER = NAMES = "causal attention", "Linformer"


class LengthExplorer(LiveWidget):
    """How far each output moves when one token changes, in causal attention and in Linformer; E beneath.

    Raises: CannotDraw from all that needs n tokens, if E has fewer columns.
    """

    title = "One token is edited: which outputs move?"
    controls = ("n", "token")

    n = traitlets.Int(SEQ_LEN - 4, min=1, max=MOST).tag(sync=True)
    token = traitlets.Int(SEQ_LEN // 2, min=1, max=MOST).tag(sync=True)

    def __init__(self, **start):
        data = {name: packed(array) for name, array in numbers()._asdict().items()}
        super().__init__({"names": [*NAMES]}, data, **start)

    @property
    def edited(self) -> int:
        """The token that is edited, counted from 1; the last one where there are fewer."""
        return min(self.token, self.n)

    @property
    def moves(self) -> dict[str, Tensor]:
        """Name -> ‖change of output j‖ when token i is edited, (n, n)."""
        return moves(self.n)

    @property
    def moved(self) -> dict[str, Tensor]:
        """Name -> how far each output moves when the chosen token is edited, (n,)."""
        return {name: far[self.edited - 1] for name, far in self.moves.items()}

    @property
    def spread(self) -> float:
        """Standard deviation of Linformer's scores at this length."""
        return spread(self.n)

    @property
    def spreads(self) -> Tensor:
        """The same for 1 … SEQ_LEN tokens."""
        return torch.tensor([spread(n) for n in range(1, SEQ_LEN + 1)])

    @property
    def E(self) -> Tensor:
        """(SLOTS, SEQ_LEN), of which the first n columns are used."""
        return numbers().E

    def _words(self) -> str:
        before = self.edited - 1
        earlier = {name: int((moved[:before] > 1e-6).sum()) for name, moved in self.moved.items()}
        return (
            f"Of {before} earlier outputs, {earlier[CAUSAL]} move in causal attention, "
            f"{earlier[LINFORMER]} in Linformer. n = {self.n} of seq_len = {SEQ_LEN}: "
            f"scores have standard deviation {self.spread:.2f}; "
            "fewer columns mix less, and the softmax is more even."
        )

    def _figure(self) -> stills.Figure:
        row, shown = self.edited - 1, {}
        limit = max(far.quantile(0.95).item() for far in self.moves.values())  # both on one scale
        highest = max(far[row].max().item() for far in self.moves.values())
        for name, far in self.moves.items():
            note, title = "outputs across, edited tokens down", f"token {self.edited} is edited: {name}"
            shown[f"{name}, map"] = stills.heat_map(far, "", limit, note=note, query=row)
            shown[f"{name}, bars"] = stills.moved(far[row], row, highest, title)
        title = f"E: {SLOTS} slots × {SEQ_LEN} positions, {self.n} of them used"
        note, limit = "slots down, positions across", self.E.abs().max().item()
        shown["E"] = stills.heat_map(self.E, title, limit, signed=True, note=note, used=self.n)
        shown["spread"] = stills.spread(self.spreads, self.n)
        layout = [[f"{name}, {part}" for name in NAMES] for part in ("bars", "map")] + [["spread", "E"]]
        return stills.board(layout, shown, (9, 7.6), (1, 3, 1))


class Numbers(NamedTuple):
    """What the widget's tokens are made of, drawn at random once.

    qkv: (3, MOST, D). edit: what an edit adds to a key and a value, (D,). E, F: (SLOTS, SEQ_LEN).
    """

    qkv: Tensor
    edit: Tensor
    E: Tensor
    F: Tensor


@cache
def numbers() -> Numbers:
    """The numbers in float64, of which float32 knows all."""
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(3, MOST, D, generator=generator)
    edit = torch.randn(D, generator=generator)
    E, F = torch.randn(2, SLOTS, SEQ_LEN, generator=generator) / SEQ_LEN**0.5
    return Numbers(qkv.double(), edit.double(), E.double(), F.double())


@cache
def moves(n: int) -> dict[str, Tensor]:
    """Name -> ‖change of each output‖, a row for each token that is edited, (n, n).

    Raises: CannotDraw if E has fewer than n columns.
    """
    (q, k, v), edit, E, F = numbers()
    q, k, v = q[:n], k[:n], v[:n]
    edits = torch.eye(n, dtype=torch.float64)[..., None] * edit  # (n edits, n tokens, D)
    mask = causal_mask(n)
    try:
        linformer = linformer_attention(q, k + edits, v + edits, E, F) - linformer_attention(q, k, v, E, F)
    except ValueError as error:
        raise CannotDraw(f"ValueError: {error}") from error
    causal = attention_weights(q, k + edits, mask) @ (v + edits) - attention_weights(q, k, mask) @ v
    return {CAUSAL: causal.norm(dim=-1), LINFORMER: linformer.norm(dim=-1)}


@cache
def spread(n: int) -> float:
    """Standard deviation of Linformer's scores of n tokens."""
    (q, k, _), _, E, _ = numbers()
    return (q[:n] @ (E[:, :n] @ k[:n]).mT / D**0.5).std(correction=0).item()
