"""Widget 8: which outputs move when one token is edited, and what an input of another length uses of E."""

import torch
from ipywidgets import IntSlider

from linformer_from_scratch.attention import attention_weights, causal_mask
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, QUERY
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.explorer import CannotDraw, Explorer

SEQ_LEN, SLOTS, D = 24, 6, 32
LEFT, TOP, COLUMN, ROW = 40, 66, 33, 96  # CSS pixels


class LengthExplorer(Explorer):
    """How far each output moves when one token changes, in causal attention and in Linformer; E beneath.

    Attributes:
        moved: name -> (n,), ‖change of the output‖ of each token.
        spread: standard deviation of Linformer's scores at this length.
        E: (SLOTS, SEQ_LEN), of which the first n columns are used.
    """

    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self._q, self._k, self._v = torch.randn(3, SEQ_LEN + 4, D, generator=generator)
        self._edit = torch.randn(D, generator=generator)
        self.E, self._F = torch.randn(2, SLOTS, SEQ_LEN, generator=generator) / SEQ_LEN**0.5
        self.n = IntSlider(SEQ_LEN - 4, 1, SEQ_LEN + 4, description="Tokens n")
        self.token = IntSlider(SEQ_LEN // 2, 1, SEQ_LEN + 4, description="Edit token")
        super().__init__([self.n, self.token])

    def draw(self):
        """See `Explorer.draw`."""
        n = self.n.value
        edited = min(self.token.value, n) - 1
        q, k, v = self._q[:n], self._k[:n], self._v[:n]
        k_edited, v_edited = k.clone(), v.clone()
        k_edited[edited] += self._edit
        v_edited[edited] += self._edit
        try:
            outputs = [
                linformer_attention(q, keys, values, self.E, self._F)
                for keys, values in ((k, v), (k_edited, v_edited))
            ]
        except ValueError as error:  # more tokens than E has columns
            raise CannotDraw(f"ValueError: {error}") from error
        mask = causal_mask(n)
        causal = [
            attention_weights(q, keys, mask) @ values for keys, values in ((k, v), (k_edited, v_edited))
        ]
        self.moved = {
            "causal attention": (causal[1] - causal[0]).norm(dim=-1),
            "Linformer": (outputs[1] - outputs[0]).norm(dim=-1),
        }
        self.spread = (q @ (self.E[:, :n] @ k).mT / D**0.5).std(correction=0).item()
        return self._card(edited).image, self._words(edited)

    def _card(self, edited: int) -> Card:
        card, n = Card(LEFT + SEQ_LEN * COLUMN + 24, TOP + 2 * ROW + 170), self.n.value
        card.text(LEFT, 20, f"Token {edited + 1} is edited: how far does each output move?", 17, bold=True)
        for row, (name, moved) in enumerate(self.moved.items()):
            floor = TOP + (row + 1) * ROW
            card.text(LEFT, floor - ROW + 10, name, 15, INK, bold=True)
            tallest = max(1e-6, moved.max().item())
            for i, change in enumerate(moved.tolist()):
                x = LEFT + i * COLUMN
                colour = QUERY if i >= edited else KEY
                card.box((x + 2, floor - change / tallest * (ROW - 34), x + COLUMN - 2, floor), fill=colour)
            card.box((LEFT, floor, LEFT + SEQ_LEN * COLUMN, floor + 1), fill=INK)
        card.text(LEFT + 420, TOP + 10, "orange: before the edit · blue: from it on", 14, GREY)
        top = TOP + 2 * ROW + 46
        card.text(LEFT, top - 20, f"E: {SLOTS} slots × {SEQ_LEN} positions, {n} of them used", 15, bold=True)
        box = (LEFT, top, LEFT + SEQ_LEN * COLUMN, top + 84)
        card.heatmap(box, self.E, (-0.6, 0.6), "RdBu_r")
        card.box((LEFT + n * COLUMN, top, box[2], box[3]), fill="#E9E9E9")
        card.box(box, outline=EDGE)
        for i in range(SEQ_LEN):
            card.text(LEFT + (i + 0.5) * COLUMN, top + 100, str(i + 1), 13, INK if i < n else GREY, "mm")
        return card

    def _words(self, edited: int) -> str:
        earlier = {name: int((moved[:edited] > 1e-6).sum()) for name, moved in self.moved.items()}
        return (
            f"Of {edited} earlier outputs, {earlier['causal attention']} move in causal attention, "
            f"{earlier['Linformer']} in Linformer. n = {self.n.value} of seq_len = {SEQ_LEN}: scores have "
            f"standard deviation {self.spread:.2f}; fewer columns mix less, and the softmax is more even."
        )
