"""Clip of chapter 04: layer 4, head 2 of the pretrained model on one sentence, rebuilt rank by rank."""

from look import *
from manim import *

from linformer_from_scratch.low_rank import decompose, rebuild, spectral_error
from linformer_from_scratch.pretrained import SENTENCES, stored_maps

RANKS = (1, 2, 3, 5, 8)
HEIGHT = 1.5  # of the tallest bar


class LowRank(Story):
    """A map is rebuilt from its singular values; each time the error is exactly the first one left out."""

    def construct(self) -> None:
        """The map on the left, the rebuilt one on the right, the singular values as bars below."""
        P = stored_maps()[SENTENCES[0]].weights[3, 1].double()
        u, sigma, vt = decompose(P)
        original = grid(P, QUERY, cell=0.25).move_to([-3.6, 1.5, 0])
        title = words("P, 14 tokens").next_to(original, UP, buff=0.15)
        bars = VGroup(*(self.bar(value / sigma[0].item()) for value in sigma.tolist()))
        bars.arrange(buff=0.12, aligned_edge=DOWN).align_to([0, -2.5, 0], DOWN)
        label = formula("sigma_1, sigma_2, ...", KEY, 34).next_to(bars, LEFT, buff=0.4)
        first = map(FadeIn, (original, title, bars, label))
        self.step("A head's attention map, and its singular values.", *first)
        shown = None
        for r in RANKS:
            new = grid(rebuild(u, sigma, vt, r).clamp(0, 1), QUERY, cell=0.25).move_to([3.6, 1.5, 0])
            name = words(f"rank {r}").next_to(new, UP, buff=0.15)
            kept = [bar.animate.set_fill(QUERY) for bar in bars[:r]]
            error = spectral_error(sigma, r).item()
            text = words(f"spectral error\n{error:.3f}", KEY, 30).move_to([0, 1.5, 0])
            texts = VGroup(name, text)
            caption = f"{r} kept: the error is the next bar, σ{'₀₁₂₃₄₅₆₇₈₉'[r + 1]} = {error:.3f}."
            change = (
                [ReplacementTransform(shown[0], new), exchange(shown[1], texts)]
                if shown
                else [FadeIn(new, texts)]
            )
            self.step(caption, *change, *kept, pause=1.2)
            shown = new, texts
        closest = "No map of that rank comes closer: Eckart and Young."
        self.step(closest, pulse(text), pause=1.5)

    def bar(self, height: float) -> Rectangle:
        """A bar of this share of the tallest."""
        bar = Rectangle(width=0.32, height=max(0.02, HEIGHT * height), stroke_width=0)
        return bar.set_fill(KEY, opacity=1)
