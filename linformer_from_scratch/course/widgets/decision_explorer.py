"""Widget 12: a map of which attention to use, and what says so. Drawn by decision_explorer.js."""

from functools import cache
from typing import Any

import traitlets

from linformer_from_scratch.course import decision
from linformer_from_scratch.course.decision import FLAGS, KINDS, Advice, Case, Evidence
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, menu
from linformer_from_scratch.course.widgets.wire_explorer import power

LENGTHS = [2**i for i in range(6, 21)]
DEVICES = {name: name for name in decision.devices()}
SHORT = dict(zip(KINDS, ("exact", "chunks", "ring or Ulysses"), strict=True))
TASKS = {  # the map's rows -> what such a case is
    "the gist: search, classify": {"causal": False, "exact_recall": False},
    "exact look-up, quoting": {"causal": False, "exact_recall": True},
    "writing": {"causal": True, "exact_recall": False},
    "writing that looks things up": {"causal": True, "exact_recall": True},
}


class DecisionExplorer(LiveWidget):
    """Chapter 12's advice as a map of tasks and n: what to take, where that was tried, what says so."""

    title = "Which attention should I use?"
    controls = ("n", "batch", "machines", "device", *FLAGS)

    n = power(6, 20, 512)
    batch = power(0, 8, 1)
    machines = power(0, 6, 1)
    device = menu(DEVICES)
    causal = traitlets.Bool(False).tag(sync=True)
    exact_recall = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **start):
        super().__init__(facts(), **start)

    @property
    def case(self) -> Case:
        """What the controls describe."""
        return Case(**self.state())

    @property
    def advice(self) -> Advice:
        """What chapter 12 advises in this case."""
        return decision.decide(self.case)

    @property
    def from_n(self) -> float:
        """From which n on the advice holds."""
        return self.advice.from_n

    @property
    def cells(self) -> list[list[Case]]:
        """The cases of the map, a row for each of TASKS, a column for each of LENGTHS."""
        return [[Case(**{**self.state(), **task, "n": n}) for n in LENGTHS] for task in TASKS.values()]

    @property
    def taken(self) -> list[list[int]]:
        """Of each cell, which of KINDS to take."""
        return [[KINDS.index(decision.rule_of(case).kind) for case in row] for row in self.cells]

    @property
    def tried(self) -> list[list[bool]]:
        """Of each cell, whether it was tried how well that works at this n."""
        return [[decision.tried(case) for case in row] for row in self.cells]

    @property
    def details(self) -> dict[str, list[str]]:
        """Heading -> what is said below the map, in lines."""
        advice, changes = self.advice, decision.changes(self.case)
        return {
            "Why": [advice.why],
            "What says so": [f"{one.shows} ({one.place})" for one in advice.evidence],
            "How far that reaches": [advice.reach],
            "Runner-up": [advice.runner_up],
            "What would change it": [f"{', '.join(words)}: {take}" for take, words in changes.items()],
            "For which n": [advice.span],
            "Where Linformer would save time": [advice.time],
        }

    def _words(self) -> str:
        advice, chosen = self.advice, [shown for name, shown in FLAGS.items() if getattr(self, name)]
        texts = "one text" if self.batch == 1 else f"{self.batch:,} texts"
        machines = "one machine" if self.machines == 1 else f"{self.machines:,} machines"
        case = [f"{self.n:,} tokens", f"{texts} at a time", *chosen, self.device, machines]
        return f"{', '.join(case)}: take {advice.take}."

    def _figure(self) -> stills.Figure:
        known, flags = decision.devices()[self.device], {name: getattr(self, name) for name in FLAGS}
        rows = dict(zip(TASKS, zip(self.taken, self.tried, strict=True), strict=True))
        dot = [*TASKS.values()].index(flags), self.n
        picture = stills.advice(rows, LENGTHS, [*SHORT.values()], dot, known.pays, known.timed)
        shown = {"map": picture, "notes": stills.notes(self.details)}
        return stills.board([["map"], ["notes"]], shown, (11, 7.5), heights=(1, 1))


@cache
def facts() -> dict[str, Any]:
    """What the browser needs to know."""
    devices = {
        name: known._asdict() | {"evidence": [*map(cited, known.evidence)]}
        for name, known in decision.devices().items()
    }
    rules = [rule._asdict() | {"evidence": [*map(cited, rule.evidence)]} for rule in decision.rules()]
    fixed = {"lengths": LENGTHS, "tasks": TASKS, "flags": FLAGS, "kinds": SHORT, "several": decision.SEVERAL}
    return fixed | {"rules": rules, "devices": devices, "spans": decision.spans(), "turn": decision.turn()}


def cited(evidence: Evidence) -> dict[str, str]:
    """What a piece of evidence shows, where, and the notebook and heading that a link leads to."""
    return {"shows": evidence.shows, "place": evidence.place, "address": evidence.address}
