"""Which attention for which case, from which n, and what says so: chapter 12's table of advice.

The rules, and what they rest on, are in decision.yml; the first rule that fits a case is its advice. What a
rule says was measured by the course, and leads to the heading of the cell that shows it, or was published,
and names who did; else it says "not known".
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.cost import DEVICES
from linformer_from_scratch.course.content import read_yaml
from linformer_from_scratch.course.ledger import CHAPTERS, LEFT, link, place
from linformer_from_scratch.course.numbers_of_advice import SEVERAL, numbers

CPU = "CPU of the course"
V100, A100, H200 = (device.name for device in DEVICES)
FLAGS = {"causal": "causal", "exact_recall": "exact look-up"}
KINDS = ("exact", "chunks", "ring")  # of what is taken


@dataclass(frozen=True)
class Case:
    """What somebody needs attention for.

    Attributes:
        n: tokens of the longest text. batch: texts at a time.
        causal: it writes, token by token. exact_recall: single tokens are looked up or copied, not the gist.
        device: one of `devices`. machines: how many share the work.

    Raises: ValueError with what is wrong, in one sentence.
    """

    n: int = 512
    batch: int = 1
    causal: bool = False
    exact_recall: bool = False
    device: str = CPU
    machines: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            if type(value) is not kind:
                raise ValueError(f"{field.name} is {value!r}, expected {kind.__name__}")
            if kind is int and getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} is {value}, expected at least 1")
        if self.device not in devices():
            raise ValueError(f"device is {self.device!r}, expected one of {', '.join(devices())}")


class Evidence(NamedTuple):
    """What it shows, the id of the cell that shows it, and who published it if not the course."""

    shows: str
    cell: str = ""
    source: str = ""

    @property
    def place(self) -> str:
        """Where to read it: "chapter 10, “From which n is it worth it?”", or who published it."""
        return "; ".join(filter(None, (_where(self.cell)[0], self.source)))

    @property
    def address(self) -> str:
        """Notebook and heading, as JupyterLab makes links; empty where there is no cell, or no notebook."""
        return _where(self.cell)[1]


@cache
def _where(cell: str) -> tuple[str, str]:
    """A cell's chapter with the heading above it, and their address; without notebooks the chapter alone."""
    if not cell:
        return "", ""
    chapter, stems = f"chapter {cell[:2]}", [path.stem for path in CHAPTERS.glob(f"{cell[:2]}_*.ipynb")]
    return (f"{chapter}, “{place(stems[0], cell)[1]}”", link(stems[0], cell)) if stems else (chapter, "")


class Known(NamedTuple):
    """What is known of a device; decision.yml describes the fields."""

    since: str
    evidence: tuple[Evidence, ...]
    pays: int | None
    timed: tuple[int, int] | None
    texts: int


class Rule(NamedTuple):
    """One line of the table; decision.yml describes the fields. `why` still has its {n}."""

    need: str
    when: Mapping[str, bool]
    span: str
    kind: str
    take: str
    why: str
    reach: str
    runner_up: str
    evidence: tuple[Evidence, ...]
    tested: tuple[int, int] | None = None
    timed: bool = False


class Advice(NamedTuple):
    """What to take for a case, and what says so.

    from_n: the first n of the rule. span: its n in words. time: where Linformer would save time.
    reach: of the evidence.
    """

    take: str
    from_n: int
    span: str
    time: str
    why: str
    evidence: tuple[Evidence, ...]
    reach: str
    runner_up: str


@cache
def _written() -> dict[str, Any]:
    return read_yaml(PACKAGE / "course" / "decision.yml")


@cache
def evidence() -> dict[str, Evidence]:
    """What rules and devices rest on, by name."""
    entries = _written()["evidence"].items()
    return {name: Evidence(**one | {"shows": one["shows"].format(**numbers())}) for name, one in entries}


@cache
def devices() -> dict[str, Known]:
    """Device -> what is known of it."""
    return {
        name: Known(
            entry["since"].format(**numbers()),
            tuple(evidence()[piece] for piece in entry["evidence"]),
            numbers()[entry["pays"]] if "pays" in entry else None,
            _ends(entry, "timed"),
            numbers()[entry["texts"]] if "texts" in entry else 0,
        )
        for name, entry in _written()["devices"].items()
    }


@cache
def rules() -> tuple[Rule, ...]:
    """The table of advice; the first line that fits counts."""
    return tuple(map(_rule, _written()["rules"]))


def _rule(entry: dict[str, Any]) -> Rule:
    shown = tuple(evidence()[piece] for piece in entry["evidence"])
    whole = {"reach": entry["reach"].format(**numbers()), "evidence": shown, "tested": _ends(entry, "tested")}
    return Rule(**entry | whole)


def _ends(entry: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    if name not in entry:
        return None
    first, last = entry[name]
    return numbers()[first], numbers()[last]


def decide(case: Case) -> Advice:
    """The first rule that fits, in the words of this case."""
    rule, known = rule_of(case), devices()[case.device]
    from_n = turn() if rule.span == "from" else 1
    why = rule.why.format(n=f"{case.n:,}")
    shown = (*rule.evidence, *known.evidence)
    return Advice(rule.take, from_n, spans()[rule.span], known.since, why, shown, reach(case), rule.runner_up)


def changes(case: Case) -> dict[str, list[str]]:
    """What one would take instead -> each single change that leads there, in words."""
    machines = 1 if case.machines > 1 else SEVERAL
    others: dict[str, dict[str, Any]] = {
        f"with {shown} {'off' if getattr(case, name) else 'on'}": {name: not getattr(case, name)}
        for name, shown in FLAGS.items()
    }
    others["on one machine" if machines == 1 else f"on {machines} machines"] = {"machines": machines}
    if case.n >= turn():
        others[f"below n = {turn():,}"] = {"n": turn() - 1}
    else:
        others[f"from n = {turn():,} on"] = {"n": turn()}
    ways: dict[str, list[str]] = {}
    for words, change in others.items():
        ways.setdefault(rule_of(replace(case, **change)).take, []).append(words)
    ways.pop(rule_of(case).take, None)
    return ways


def rule_of(case: Case) -> Rule:
    """The first of `rules` that fits."""
    facts = {name: getattr(case, name) for name in FLAGS} | {"split": case.machines > 1}
    fitting = "any", "from" if case.n >= turn() else "below"
    return next(rule for rule in rules() if rule.span in fitting and rule.when.items() <= facts.items())


def turn() -> int:
    """The n at which advice on the gist turns: the first for which the encoder has no positions."""
    return numbers()["passages"] + 1


def spans() -> dict[str, str]:
    """A rule's span -> its n, in words."""
    return {"any": "any n", "below": f"up to {turn() - 1:,} tokens", "from": f"from {turn():,} tokens on"}


def reach(case: Case) -> str:
    """How far the evidence goes: on what it was tried, and what of this case it does not cover."""
    rule, known = rule_of(case), devices()[case.device]
    sentences = [rule.reach]
    if rule.tested and not tried(case):
        sentences.append(f"How well it works at n = {case.n:,} was not tested.")
    if rule.timed and known.timed:
        if not known.timed[0] <= case.n <= known.timed[1]:
            sentences.append(f"Nothing was timed at n = {case.n:,}.")
        if case.batch > known.texts:
            sentences.append(f"At most {known.texts} texts at a time were timed, not {case.batch:,}.")
    return " ".join(sentences)


def tried(case: Case) -> bool:
    """Whether it was tried, at this n, how well the advice works; no for a rule that names no n."""
    tested = rule_of(case).tested
    return tested is not None and tested[0] <= case.n <= tested[1]


class DecisionTable:
    """The table of advice: HTML with links in a notebook, lines of text elsewhere."""

    columns = ("your case", "n", *FLAGS.values(), "take", "how far", "what says so")

    def rows(self) -> list[tuple[str, ...]]:
        """Need, n, yes, no or either for each flag, what to take, how far that was tried."""
        words = {True: "yes", False: "no", None: "either"}
        rows = []
        for rule in rules():
            flags = (words[rule.when.get(name)] for name in FLAGS)
            rows.append((rule.need, spans()[rule.span], *flags, rule.take, rule.reach))
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{need}, {span}: {take}" for need, span, *_, take, _ in self.rows())

    def _repr_html_(self) -> str:
        head, lines = "".join(f"<th {LEFT}>{name}</th>" for name in self.columns), []
        for row, rule in zip(self.rows(), rules(), strict=True):
            cells = [html.escape(cell) for cell in row]
            cells.append("<br>".join(f"{html.escape(one.shows)} ({_place(one)})" for one in rule.evidence))
            lines.append("".join(f"<td {LEFT}>{cell}</td>" for cell in cells))
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _place(evidence: Evidence) -> str:
    """Where to read it, as HTML, with a link if there is one."""
    place, address = html.escape(evidence.place), html.escape(evidence.address)
    return f"<a href='{address}'>{place}</a>" if address else place
