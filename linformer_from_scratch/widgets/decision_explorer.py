"""Widget 12: which attention for which case, and what says so. Drawn by decision_explorer.js."""

from functools import cache, partial
from typing import Any

import traitlets
from matplotlib.figure import Figure

from linformer_from_scratch import plots
from linformer_from_scratch.course import decision
from linformer_from_scratch.course.decision import FLAGS, KINDS, Advice, Case, Evidence
from linformer_from_scratch.widgets.live import LiveWidget, menu
from linformer_from_scratch.widgets.wire_explorer import power

LENGTHS = [2**i for i in range(6, 21)]
DEVICES = {name: name for name in decision.devices()}
SHORT = dict(zip(KINDS, ("exact", "chunks", "ring or Ulysses"), strict=True))


class DecisionExplorer(LiveWidget):
    """Chapter 12's advice for a case that one sets: what to take, from which n, why, what says so."""

    title = "Which attention should I use?"
    controls = ("n", "batch", "machines", "device", *FLAGS)

    n = power(6, 20, 512)
    batch = power(0, 8, 1)
    machines = power(0, 6, 1)
    device = menu(DEVICES)
    causal = traitlets.Bool(False).tag(sync=True)
    exact_recall = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **start):
        super().__init__(**start)
        self.facts = facts()

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
    def details(self) -> dict[str, list[str]]:
        """Heading -> what is said beside the recommendation, in lines."""
        advice = self.advice
        return {
            "For which n": [advice.span],
            "Where Linformer would save time": [advice.time],
            "What says so": [f"{one.shows} ({one.place})" for one in advice.evidence],
            "How far that reaches": [advice.reach],
            "Runner-up": [advice.runner_up],
            "What would change it": [
                f"{', '.join(words)}: {take}" for take, words in decision.changes(self.case).items()
            ],
        }

    @property
    def spans(self) -> list[tuple[int, int, str]]:
        """(first n, last n, kind of what is taken) along n, all else as it is."""
        spans: list[tuple[int, int, str]] = []
        for n in LENGTHS:
            kind = decision.rule_of(Case(**self.state() | {"n": n})).kind
            if spans and spans[-1][2] == kind:
                spans[-1] = (spans[-1][0], n, kind)
            else:
                spans.append((n, n, kind))
        return spans

    @property
    def words(self) -> str:
        """See `LiveWidget.words`."""
        advice, chosen = self.advice, [shown for name, shown in FLAGS.items() if getattr(self, name)]
        texts = "one text" if self.batch == 1 else f"{self.batch:,} texts"
        machines = "one machine" if self.machines == 1 else f"{self.machines:,} machines"
        case = [f"{self.n:,} tokens", f"{texts} at a time", *chosen, self.device, machines]
        return f"{', '.join(case)}: take {advice.take}. {advice.why}"

    def figure(self) -> Figure:
        """See `LiveWidget.figure`."""
        rule, known = decision.rule_of(self.case), decision.devices()[self.device]
        take = [
            (low, 2 * high, plots.LINES[KINDS.index(kind)], SHORT[kind]) for low, high, kind in self.spans
        ]
        rows = {"what to take": take}
        for name, ends in (("timed on this device", known.timed), ("tried how well it works", rule.tested)):
            lengths = " to ".join(f"{n:,}" for n in sorted({*ends})) if ends else "nothing"
            rows[f"{name}:\n{lengths}"] = [(*ends, plots.GREY, "")] if ends else []
        title = "What to take, by tokens n"
        ranges = partial(plots.draw_ranges, rows=rows, lengths=LENGTHS, n=self.n, title=title)
        notes = partial(plots.draw_notes, notes=self.details)
        return plots.board(
            [["ranges"], ["notes"]], {"ranges": ranges, "notes": notes}, (11, 6.5), heights=(2, 3)
        )


@cache
def facts() -> dict[str, Any]:
    """What the browser needs to know."""
    devices = {
        name: known._asdict() | {"evidence": [*map(cited, known.evidence)]}
        for name, known in decision.devices().items()
    }
    rules = [rule._asdict() | {"evidence": [*map(cited, rule.evidence)]} for rule in decision.rules()]
    return {
        "lengths": LENGTHS,
        "rules": rules,
        "devices": devices,
        "spans": decision.spans(),
        "turn": decision.turn(),
        "several": decision.SEVERAL,
        "flags": FLAGS,
        "kinds": SHORT,
    }


def cited(evidence: Evidence) -> dict[str, str]:
    """What a piece of evidence shows, where, and the notebook and heading that a link leads to."""
    return {"shows": evidence.shows, "place": evidence.place, "address": evidence.address}
