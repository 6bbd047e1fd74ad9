"""Clip of chapter 11: 22 tokens of 4 features on 4 ranks; whole numbers, so that sums can be read."""

import torch
from look import *
from manim import *

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course.exercises.distributed import partial_slots
from linformer_from_scratch.course.plots import GREY
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes

N, D, SLOTS, RANKS, CELL = 22, 4, 3, 4, 0.36
X, MIDDLE, EDGE = [3.1 * s - 4.15 for s in range(RANKS)], 0.5, -5.45  # of the ranks, the sum, the letters
Y = {"rank": 3.55, "E": 2.68, "K": 1.23, "slots": -0.55, "sum": -2.3}
WIRE, SHORT, LONG = 8, 2**14, 2**17  # ranks and tokens of the text whose bytes are counted


class Distributed(Story):
    """Each rank compresses its tokens with its columns of E; the sum over ranks is k slots, whatever n."""

    def construct(self) -> None:
        """E and K are cut, the parts multiplied, the products summed, the sum sent back; then bytes."""
        generator = torch.Generator().manual_seed(4)
        E = torch.randint(2, (SLOTS, N), generator=generator).float()
        K = torch.randint(4, (N, D), generator=generator).float()
        lengths = [len(part) for part in K.tensor_split(RANKS)]
        partial = partial_slots(E, K, lengths)
        torch.testing.assert_close(partial.sum(dim=0), E @ K, rtol=0, atol=0)
        columns, keys = row(E.split(lengths, dim=1), INK, "E"), row(K.mT.split(lengths, dim=1), KEY, "K")
        letters = VGroup(formula("E").next_to(columns, LEFT), formula("K^T", KEY).next_to(keys, LEFT))
        caption = f"A text of {N} tokens: their keys, and a column of E for each."
        self.step(caption, FadeIn(columns, keys, letters), seconds=0.6)
        names = VGroup(*(words(f"rank {s}").move_to([x, Y["rank"], 0]) for s, x in enumerate(X)))
        moves = [part.animate.set_x(x) for parts in (columns, keys) for part, x in zip(parts, X, strict=True)]
        moves += [letter.animate.set_x(EDGE, RIGHT) for letter in letters]
        caption = (
            f"Both are cut at the same places: {' + '.join(map(str, lengths))} tokens for {RANKS} ranks."
        )
        self.step(caption, *moves, FadeIn(names))
        blocks = [slots(part, E @ K, x, "slots") for part, x in zip(partial, X, strict=True)]
        factors = [VGroup(*pair) for pair in zip(columns, keys, strict=True)]
        products = [*map(pulse, factors), FadeIn(*(cells for cells, _ in blocks))]
        letter = formula("(E_s K_s)^T", KEY, 34).set_x(EDGE, RIGHT).set_y(Y["slots"])
        caption = f"Each rank compresses its own tokens into {SLOTS} slots."
        self.step(caption, *products, FadeIn(letter), seconds=1, pause=0.1)
        self.play(FadeIn(*(numbers for _, numbers in blocks)), run_time=0.3)
        self.wait(1)
        total = self.add_up(blocks, partial.sum(dim=0))
        name = formula("(E K)^T", KEY, 34).next_to(total, RIGHT)
        self.step("… and give E K, as if one rank held the whole text.", FadeIn(name), seconds=0.4)
        back = VGroup(name.copy().set_x(EDGE, RIGHT).set_y(Y["slots"]))
        back.add(*(total.copy().move_to(block) for block in blocks))
        caption = f"Every rank gets the sum: the same {SLOTS} slots everywhere."
        self.step(caption, pulse(total), exchange(VGroup(letter, *blocks), back), seconds=1)
        grown = ValueTracker(0)
        bars = always_redraw(lambda: sent(round(SHORT * (LONG / SHORT) ** grown.get_value())))
        self.play(FadeOut(total, name), run_time=0.2)
        self.play(FadeIn(bars), run_time=0.2)
        caption = "A longer text has no more slots to send."
        self.step(caption, grown.animate.set_value(1), seconds=1.5, pause=2)

    def add_up(self, blocks: list[VGroup], whole: torch.Tensor) -> VGroup:
        """A copy of each rank's slots comes straight down; then the sum takes the place of all addends."""
        addends, pluses = VGroup(*(block.copy() for block in blocks)), VGroup()
        for x in X[1:]:
            pluses.add(formula("+").move_to([x - (X[1] - X[0]) / 2, Y["sum"], 0]))
        down = Succession(addends.animate.set_y(Y["sum"]), FadeIn(pluses))
        self.step("The slots are summed over the ranks …", down, seconds=1.2, pause=0.6)
        total = slots(whole, whole, MIDDLE, "sum")
        self.play(exchange(VGroup(addends, pluses), total), run_time=0.8)
        self.wait(0.7)
        return total


def row(parts: tuple[torch.Tensor, ...], color: str, name: str) -> VGroup:
    """Parts of a matrix side by side, in the same shades; white is zero."""
    most = max(part.max() for part in parts)
    cells = VGroup(*(grid(0.8 * part / most, color, cell=CELL) for part in parts))
    return cells.arrange(RIGHT, buff=0).set_y(Y[name])


def slots(block: torch.Tensor, whole: torch.Tensor, x: float, name: str) -> VGroup:
    """Slots as columns of cells, and their numbers; the shades are those of the whole text's slots."""
    cells = grid(0.8 * block.mT / whole.max(), KEY, KEY, CELL).stretch(1.5, 0).move_to([x, Y[name], 0])
    values = zip(block.mT.flatten().tolist(), cells[:-1], strict=True)
    return VGroup(cells, VGroup(*(words(f"{value:.0f}", size=21).move_to(cell) for value, cell in values)))


def sent(n: int) -> VGroup:
    """Two bars: what a rank sends for a text of n tokens."""
    sizes, longest = (Sizes(m, d_model=1024, proj_dim=256, bytes_per_number=2) for m in (n, LONG))
    title = f"Each of {WIRE} ranks sends, in a layer's forward pass, for keys and values:"
    facts = f"d = {sizes.d_model:,}, k = {sizes.proj_dim}, {8 * sizes.bytes_per_number} bit, n = {n:,}"
    bars = VGroup(words(title, size=22).move_to([-6.2, -1.68, 0], aligned_edge=LEFT))
    bars.add(words(facts, size=22).move_to([6.2, -2.72, 0], aligned_edge=RIGHT))
    methods = {"ring attention": (ring_bytes, GREY), "Linformer": (linformer_bytes, KEY)}
    for i, (name, (method, color)) in enumerate(methods.items()):
        start, length = [-3.6, -2.19 - 0.53 * i, 0], 8 * method(sizes, WIRE) / ring_bytes(longest, WIRE)
        bar = Rectangle(width=length, height=0.35, color=color, fill_opacity=1, stroke_width=0)
        bar.move_to(start, aligned_edge=LEFT)
        value = words(f"{method(sizes, WIRE) / 1e6:.1f} MB", size=24).next_to(bar, RIGHT)
        bars.add(words(name, size=24).next_to(start, LEFT), bar, value)
    return bars
