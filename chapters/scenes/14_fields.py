"""Clip of chapter 14: E learns who belongs together, from answers alone.

A dot is a sensor that hears names, where it stands in the hall; sensors whose columns of E are alike have the
same colour. Beside it are E's rows, their columns sorted by the source that is heard.
"""

import torch
from look import *
from manim import *
from torch import Tensor
from torch.nn.functional import one_hot

from linformer_from_scratch.fields.sensors import Sensors
from linformer_from_scratch.linformer import linformer_attention

N, SLOTS, SOURCES, NAMES = 256, 8, 4, 8
HALL = Sensors(N, sources=SOURCES, names=NAMES)
SHOWN = 0, 4, 8, 16, 32, 64, 128  # inputs
X = {"hall": -3.3, "E": 3.3}


class Fields(Story):
    """E begins as noise; after some dozens of inputs the sensors of four hidden sources stand out."""

    def construct(self) -> None:
        """The dots take the colours of four groups, and E gets stripes."""
        titles = [
            words("the hall", INK).move_to([X["hall"], 3.4, 0]),
            words("E, sorted by source", KEY).move_to([X["E"], 3.4, 0]),
        ]
        parts = shown(*STATES[0])
        self.step(
            "Each sensor hears one of four sources, always the same.",
            FadeIn(*titles, *parts),
            pause=1.6,
        )
        captions = {4: "E and F begin as noise, and learn from right answers alone."}
        captions |= {SHOWN[-1]: "Nobody told E. Its rows are patterns of places, right for every input."}
        for state in STATES[1:]:
            changes = [Transform(old, new) for old, new in zip(parts, shown(*state), strict=True)]
            if state[0] in captions:
                self.step(captions[state[0]], *changes, seconds=1.0, pause=0.8)
            else:
                self.play(*changes, run_time=1.0)
                self.wait(0.6)
        assert STATES[-1][2] > 0.95
        self.wait(2.0)


def learning() -> list[tuple[int, Tensor, float]]:
    """Inputs so far, E (SLOTS, sensors that hear names, sorted by source), and the share of right answers."""
    draw = torch.Generator().manual_seed(0)
    E, F = ((torch.randn(SLOTS, N, generator=draw) / (4 * N**0.5)).requires_grad_() for _ in range(2))
    optimizer, states = torch.optim.Adam([E, F], lr=0.01), []
    for step in range(SHOWN[-1] + 1):
        names, values, asked, right = (x[0] for x in HALL.batches(1)(step))
        k, v = (one_hot(x, kinds + 1)[:, :kinds].float() for x, kinds in ((names, NAMES), (values, 16)))
        answers = linformer_attention(30 * one_hot(asked, NAMES).float(), k, v, E, F)
        if step in SHOWN:
            states.append(
                (
                    step,
                    E.detach()[:, sorted_names()].clone(),
                    (answers.argmax(-1) == right).float().mean().item(),
                )
            )
        optimizer.zero_grad()
        (answers - one_hot(right, 16)).square().sum().backward()
        optimizer.step()
    return states


def sorted_names() -> Tensor:
    """The sensors that hear names, source by source."""
    order = HALL.source_of.argsort(stable=True)
    return order[~HALL.hears_values[order]]


def shown(step: int, E: Tensor, share: float) -> VGroup:
    """The hall with its dots, E's rows, and how many inputs there were."""
    dots = VGroup(
        *(
            Dot([*place, 0], radius=0.1, color=colour)
            for place, colour in zip(places().tolist(), colours(E), strict=True)
        )
    )
    rows = grid(E.abs() / E.abs().max(), KEY, cell=0.045).stretch_to_fit_height(3.4)
    said = words(f"{step} inputs: {10 * share:.0f} answers in ten are right", size=30)
    return VGroup(dots, rows.move_to([X["E"], 0.6, 0]), said.move_to([0, -2.6, 0]))


def places() -> Tensor:
    """Where the sensors that hear names stand, around the source they hear. Shape: (sensors, 2)"""
    draw, groups = torch.Generator().manual_seed(3), HALL.source_of[sorted_names()]
    centres = torch.tensor([[-1.2, 1.0], [1.2, 1.0], [-1.2, -1.0], [1.2, -1.0]])
    scattered = 0.62 * torch.randn(len(groups), 2, generator=draw).clamp(-1.6, 1.6)
    return centres[groups] + scattered + torch.tensor([X["hall"], 0.6])


def colours(E: Tensor) -> list[ManimColor]:
    """Columns that are alike have the same hue; the paler, the less they hold of what E has in the end."""
    centred = LAST - LAST.mean(dim=1, keepdim=True)
    axes = torch.linalg.svd(centred, full_matrices=False).U[:, :2]
    x, y = axes.T @ (E - LAST.mean(dim=1, keepdim=True))
    radius, hue = (x**2 + y**2).sqrt(), torch.atan2(y, x) / (2 * PI) % 1
    strength = (1.6 * radius / (axes.T @ centred).norm(dim=0).mean()).clamp(0.15, 1)
    return [
        ManimColor.from_hsv((h, 0.75 * s, 0.8)) for h, s in zip(hue.tolist(), strength.tolist(), strict=True)
    ]


STATES = learning()
LAST = STATES[-1][1]
