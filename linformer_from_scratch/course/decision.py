"""Which attention for which case, from which n, and what says so: chapter 12's table of advice as data.

`rules` is an ordered list; the first line that fits a case is its advice. What a line says was measured by
the course, and leads to the heading of the cell that shows it, or was published, and names who did; else it
says "not known". Numbers are read from recorded files and published tables.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple

from linformer_from_scratch.benchmark import measured_crossover
from linformer_from_scratch.benchmark.layers import FUSED
from linformer_from_scratch.benchmark.published import (
    FLASH_FORWARD_MS,
    FLASH_LENGTHS,
    LRA_TASKS,
    LRA_XIONG,
    TABLE_3,
)
from linformer_from_scratch.cost import DEVICES, Sizes, compress_tokens, floor_seconds, tiled_attention
from linformer_from_scratch.course.ledger import CHAPTERS, LEFT, heading_above, link
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes, ulysses_bytes
from linformer_from_scratch.experiments.benchmark import records
from linformer_from_scratch.experiments.curves import accuracies
from linformer_from_scratch.experiments.results import read_rows, select

CPU = "CPU of the course"
V100, A100, H200 = (device.name for device in DEVICES)
K = 256  # slots
WORTH = 1.5  # times as fast: what chapter 10 calls worth it
WRITTEN = 128  # bytes of a text in the recorded runs of 12_writing
FLASH_TEXTS = 16  # at a time, in what FlashAttention's authors published (benchmark/published.py)
SEVERAL = 8  # machines of the question "and on several?"
FITTED = "windows of n, last layer exact, fitted"  # of 12_lengths
FLAGS = {"causal": "causal", "exact_recall": "exact look-up", "lengths_vary": "lengths vary"}
KINDS = ("exact", "Linformer", "chunks", "ring")  # of what is taken
SINCE = {  # from which n
    "any": "Any n.",
    "below": "Every n until Linformer pays. {time}",
    "time": "From where exact attention falls behind. {time}",
    "bytes": "On {machines} it sends less than a ring or Ulysses from n = {split_n} on (k = {k}; counted, "
    "not timed). From which n it is faster is not known.",
    "unknown": "Not known: bytes were counted, nothing was timed.",
}


@dataclass(frozen=True)
class Case:
    """What somebody needs attention for.

    Attributes:
        n: tokens of the longest text. batch: texts at a time.
        causal: it writes, token by token. exact_recall: single tokens are looked up or copied, not the gist.
        lengths_vary: texts have many lengths. device: one of `devices`. machines: how many share the work.

    Raises: ValueError with what is wrong, in one sentence.
    """

    n: int = 512
    batch: int = 1
    causal: bool = False
    exact_recall: bool = False
    lengths_vary: bool = False
    device: str = CPU
    machines: int = 1

    def __post_init__(self):
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
        """Where it stands, to be read: "chapter 10, “From which n is it worth it?”", or who published it."""
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
    chapter, found = f"chapter {cell[:2]}", [path.stem for path in CHAPTERS.glob(f"{cell[:2]}_*.ipynb")]
    return (f"{chapter}, “{heading_above(found[0], cell)}”", link(found[0], cell)) if found else (chapter, "")


class Known(NamedTuple):
    """What is known of a device.

    from_n: from which n Linformer is worth it there, or None. since: the same in a sentence.
    timed: first and last n of the times. texts: most at a time in them.
    """

    from_n: int | None
    since: str
    evidence: tuple[Evidence, ...]
    timed: tuple[int, int] | None = None
    texts: int = 0


class Rule(NamedTuple):
    """One line of the table.

    need: whose it is. when: what a case must be; "split": on several machines.
    span: "any" n, or "below" or "from" the one at which Linformer is worth it.
    kind: of what is taken, one of KINDS. since: from which n, one of SINCE.
    reach: on what it was tried. tested: first and last n at which the course tried how well it works.
    timed: whether the device's times matter.
    Words in braces stand for what `values` gives.
    """

    need: str
    when: Mapping[str, bool]
    span: str
    kind: str
    take: str
    why: str
    since: str
    reach: str
    runner_up: str
    evidence: tuple[Evidence, ...]
    tested: tuple[int, int] | None = None
    timed: bool = False


class Advice(NamedTuple):
    """What to take for a case, and what says so.

    from_n: from which n on, None if not known. since: the same in a sentence. reach: of the evidence.
    """

    take: str
    from_n: int | None
    since: str
    why: str
    evidence: tuple[Evidence, ...]
    reach: str
    runner_up: str


def decide(case: Case) -> Advice:
    """The first rule that fits, in the words of this case."""
    rule, known, said = rule_of(case), devices()[case.device], values(case)
    from_n = {"any": 1, "below": 1, "time": known.from_n, "bytes": split_n(case.machines), "unknown": None}
    return Advice(
        rule.take,
        from_n[rule.since],
        SINCE[rule.since].format(**said),
        rule.why.format(**said),
        (*rule.evidence, *known.evidence) if rule.timed else rule.evidence,
        reach(case),
        rule.runner_up,
    )


def changes(case: Case) -> dict[str, list[str]]:
    """What one would take instead -> each single change that leads there, in words."""
    turn, is_long = turn_of(case.device), case.n >= turn_of(case.device)
    others: dict[str, dict[str, Any]] = {
        f"with {shown} {'off' if getattr(case, name) else 'on'}": {name: not getattr(case, name)}
        for name, shown in FLAGS.items()
    }
    machines = 1 if case.machines > 1 else SEVERAL
    others["on one machine" if machines == 1 else f"on {machines} machines"] = {"machines": machines}
    others |= {f"below n = {turn:,}": {"n": turn - 1}} if is_long else {f"from n = {turn:,} on": {"n": turn}}
    found: dict[str, list[str]] = {}
    for words, other in others.items():
        found.setdefault(rule_of(replace(case, **other)).take, []).append(words)
    return {take: words for take, words in found.items() if take != rule_of(case).take}


def rule_of(case: Case) -> Rule:
    """The first of `rules` that fits."""
    facts = {name: getattr(case, name) for name in FLAGS} | {"split": case.machines > 1}
    spans = "any", "from" if case.n >= turn_of(case.device) else "below"
    return next(rule for rule in rules() if rule.span in spans and rule.when.items() <= facts.items())


def turn_of(device: str) -> int:
    """The n at which advice turns: where Linformer is worth it; where that is not known, the n of the CPU."""
    return devices()[device].from_n or worth_it_on_the_cpu()


def values(case: Case) -> dict[str, str]:
    """What stands for the words in braces."""
    return {
        "n": f"{case.n:,}",
        "texts": "one text" if case.batch == 1 else f"{case.batch:,} texts",
        "machines": "one machine" if case.machines == 1 else f"{case.machines:,} machines",
        "time": devices()[case.device].since,
        "split_n": f"{split_n(case.machines):,}",
        "k": f"{K}",
    }


def reach(case: Case) -> str:
    """How far the evidence goes: on what it was tried, and what of this case it does not cover."""
    rule, known = rule_of(case), devices()[case.device]
    said = [rule.reach]
    if rule.tested and not rule.tested[0] <= case.n <= rule.tested[1]:
        said.append(f"How well it works at n = {case.n:,} was not tested.")
    if rule.timed and known.timed:
        if not known.timed[0] <= case.n <= known.timed[1]:
            said.append(f"Nothing was timed at n = {case.n:,}.")
        if case.batch > known.texts:
            said.append(f"At most {known.texts} texts at a time were timed, not {case.batch:,}.")
    return " ".join(said)


def split_n(machines: int) -> int:
    """From which n Linformer sends less than a ring and Ulysses, a text split over machines."""
    s = Sizes(2**20, proj_dim=K)
    exact = min(ring_bytes(s, machines), ulysses_bytes(s, machines))  # both in proportion to n
    return round(s.n * linformer_bytes(s, machines) / exact) if machines > 1 else 1


# What is known of devices.


@cache
def worth_it_on_the_cpu() -> int:
    """From which n Linformer is worth it by the recorded benchmark: in four rounds of five."""
    sure = records.table_3(records.recorded_cpu()["rows"], records.surely, FUSED, "forward")
    return first_worth({n: by_k[K] for n, by_k in sure.items()})


def first_worth(faster: Mapping[int, float]) -> int:
    """The first n at which it is at least WORTH times as fast."""
    return min(n for n, times in faster.items() if times >= WORTH)


@cache
def devices() -> dict[str, Known]:
    """Device -> what is known of it."""
    content = records.recorded_cpu()
    rows, machine = select(content["rows"], part="table 3", **{"pass": "forward"}), content["machine"]
    lengths, texts = ({row[name] for row in rows} for name in ("n", "texts"))
    flash, ours = FLASH_FORWARD_MS["FlashAttention"], FLASH_FORWARD_MS["Linformer"]
    here = worth_it_on_the_cpu()
    a100 = first_worth({n: a / b for n, a, b in zip(FLASH_LENGTHS, flash, ours, strict=True)})
    shortest, million = min(TABLE_3), Sizes(2**20, 1024, 16, K, bytes_per_number=2)
    published: Any = TABLE_3[shortest]  # k -> times as fast, times smaller
    layers = compress_tokens(million, fused=True), tiled_attention(million)
    floors = [1e3 * floor_seconds(steps, DEVICES[-1], million.bytes_per_number) for steps in layers]
    on_the_cpu = Evidence(f"k = {K}: {WORTH} times as fast as fused exact from n = {here:,} on", "10-094")
    elsewhere = f"on the {CPU} it pays from n = {here:,} on"
    return {
        CPU: Known(
            here,
            f"A block with Linformer, k = {K}, is {WORTH} times as fast as with fused exact attention from "
            f"n = {here:,} on: measured here, forward ({machine['processor']}, {machine['cores']} cores).",
            (on_the_cpu,),
            (min(lengths), max(lengths)),
            max(texts),
        ),
        V100: Known(
            None,
            f"When it pays on a V100 is not known: the paper timed stored maps; {elsewhere}.",
            (
                Evidence(
                    f"k = 128: {published[128][0]} times as fast as stored maps at n = {shortest}",
                    "10-035",
                    "Wang et al. 2020, arXiv 2006.04768",
                ),
                on_the_cpu,
            ),
        ),
        A100: Known(
            a100,
            f"On an A100 Linformer's attention alone is {WORTH} times as fast as FlashAttention from "
            f"n = {a100:,} on: published, forward, no spread.",
            (
                Evidence(
                    "faster than FlashAttention, attention alone, from "
                    f"n = {measured_crossover(FLASH_LENGTHS, ours, flash):,.0f} on",
                    "10-087",
                    "Dao et al. 2022, arXiv 2205.14135",
                ),
            ),
            (min(FLASH_LENGTHS), max(FLASH_LENGTHS)),
            FLASH_TEXTS,
        ),
        H200: Known(
            None,
            f"When it pays on an H200 is not known: nothing was timed there; {elsewhere}.",
            (
                Evidence(
                    f"floors of a layer, a million tokens, one H200: Linformer {floors[0]:.2f} ms, exact "
                    f"{floors[1]:,.2f} ms",
                    "11-084",
                ),
                on_the_cpu,
            ),
        ),
    }


# The table.


@cache
def rules() -> tuple[Rule, ...]:
    """The table of advice; the first line that fits counts."""
    e, gist = evidence(), {"causal": False, "exact_recall": False}
    lengths = [*accuracies("recall")["full"]]
    (passages,) = (row["n"] for row in read_rows("12_costs"))
    encoder = f"Tried on one encoder of six layers, texts of {passages} tokens from two corpora."
    return (
        Rule(
            need="several machines, short texts",
            when={"split": True},
            span="below",
            kind="exact",
            take="fused exact attention, causal for writing; the machines share the batch, not the text",
            why="A text of {n} tokens needs no split, and ranks that share a batch learn as one does.",
            since="below",
            reach="Tried with one small model on two ranks.",
            runner_up="nothing else was tried",
            evidence=(e["batch"],),
            timed=True,
        ),
        Rule(
            need="several machines, the gist of one long text",
            when={"split": True, **gist, "lengths_vary": False},
            span="from",
            kind="Linformer",
            take="Linformer, its text split over the machines, if one of them is too small",
            why="What it sends does not grow with n; whether {k} slots hold so long a gist is not known.",
            since="bytes",
            reach="Sums and bytes were tried on two ranks of a CPU, quality was not.",
            runner_up="exact attention by a ring or Ulysses; for a genome, a model of long convolutions",
            evidence=(e["constant"], e["less"], e["enough"], e["one machine"], e["genome"]),
        ),
        Rule(
            need="several machines, one long text: look-up, writing, many lengths",
            when={"split": True},
            span="from",
            kind="ring",
            take="exact attention, its text split by a ring or Ulysses",
            why="Both are exact at every length, causal or not; Linformer is neither exact nor causal.",
            since="unknown",
            reach="Bytes were counted on two ranks of a CPU, speed was not tried.",
            runner_up="fused exact attention on one machine, as long as its memory is enough",
            evidence=(e["grows"], e["wire"], e["recall"], e["ring"], e["ulysses"]),
        ),
        Rule(
            need="writing",
            when={"causal": True},
            span="any",
            kind="exact",
            take="causal exact attention, fused",
            why="Every slot of Linformer mixes the whole text, the next token too, so it cannot write.",
            since="any",
            reach="Tried with two layers on short texts, byte by byte, three seeds.",
            runner_up="sliding windows, where nothing far away is asked for; or linear attention",
            evidence=(e["writing"], e["leak"], e["causal"]),
            tested=(WRITTEN, WRITTEN),
        ),
        Rule(
            need="exact look-up, copying, quoting",
            when={"causal": False, "exact_recall": True},
            span="any",
            kind="exact",
            take="fused exact attention",
            why="In a fixed number of slots recall and copies get worse as texts grow; exact ones do not.",
            since="any",
            reach="Tried with two layers that were trained for the task, three seeds.",
            runner_up="a sparse pattern made for the task, if one knows how far away the answer stands",
            evidence=(e["recall"], e["copy"], e["zoology"]),
            tested=(min(lengths), max(lengths)),
            timed=True,
        ),
        Rule(
            need="the gist (classify, search), some hundred tokens",
            when=gist,
            span="below",
            kind="exact",
            take="fused exact attention, as it is",
            why="With {n} tokens slots save little time, and they change every vector.",
            since="below",
            runner_up="weights in 8 bits, if vectors may change a little; chunks where memory is short",
            evidence=(e["search"], e["saved"], e["int8"]),
            reach=encoder,
            tested=(passages, passages),
            timed=True,
        ),
        Rule(
            need="the gist of long texts of many lengths",
            when={**gist, "lengths_vary": True},
            span="from",
            kind="chunks",
            take="chunks, encoded exactly and averaged",
            why="They take every length and need no training; an E that follows the length must be fitted.",
            since="time",
            runner_up="Linformer with an E that follows the length; or windows with global tokens",
            evidence=(e["search"], e["saved"], e["lengths"], e["follows"], e["documents"], e["longformer"]),
            reach=encoder,
            tested=(passages, passages),
            timed=True,
        ),
        Rule(
            need="the gist of long texts of one length",
            when={**gist, "lengths_vary": False},
            span="from",
            kind="chunks",
            take="chunks, encoded exactly and averaged; if they are not enough, Linformer",
            why="Linformer can pay in time here, but no search told it from chunks, which need no training.",
            since="time",
            runner_up="counting words, for classes; or fused exact attention",
            evidence=(e["search"], e["saved"], e["words"], e["arena"]),
            reach=encoder,
            tested=(passages, passages),
            timed=True,
        ),
    )


@cache
def evidence() -> dict[str, Evidence]:
    """What lines of the table rest on."""
    recalled = accuracies("recall")
    longest = max(recalled["full"])
    (passages,) = (row["n"] for row in read_rows("12_costs"))
    exact, slots = min(recalled["full"][longest]), max(recalled["Linformer, learned"][longest])
    written = {name: _mean_end(name) for name in ("full, causal", "Linformer")}
    cut, ours = (_over_fused(name) for name in ("fused exact, chunks of 128", "Linformer, k = 128"))
    text = Sizes(2**17, 1024, 16, K, bytes_per_number=2)
    ring, ulysses, linformer = (
        way(text, SEVERAL) / 1e6 for way in (ring_bytes, ulysses_bytes, linformer_bytes)
    )
    theirs, low_rank = (LRA_XIONG[name][LRA_TASKS.index("Text")] for name in ("Transformer", "Linformer"))
    return {
        "batch": Evidence("two ranks that share every batch: the losses of one process", "11-019"),
        "constant": Evidence("two ranks, counted: as many bytes at n = 4,096 as at n = 512", "11-059"),
        "grows": Evidence("two ranks, counted: what a ring and Ulysses send grows with n", "11-068"),
        "wire": Evidence(
            f"a layer forward, n = {text.n:,}, by formula: ring {ring:.2f} MB, Ulysses {ulysses:.2f} MB, "
            f"Linformer {linformer:.2f} MB",
            "11-070",
        ),
        "less": Evidence(
            f"{SEVERAL} ranks, by formula: less than a ring and Ulysses above n = {split_n(SEVERAL):,}",
            "11-074",
        ),
        "enough": Evidence("whether so few slots are enough, no table says", "11-087"),
        "one machine": devices()[H200].evidence[0],
        "genome": Evidence(
            "human DNA, a million tokens, by convolutions",
            "",
            "Nguyen et al. 2023, arXiv 2306.15794",
        ),
        "ring": Evidence("keys and values travel around a ring", "", "Liu et al. 2023, arXiv 2310.01889"),
        "ulysses": Evidence("shards of heads, not of tokens", "", "Jacobs et al. 2023, arXiv 2309.14509"),
        "writing": Evidence(
            f"nats a byte, beginning only: causal exact {written['full, causal']:.2f}, Linformer "
            f"{written['Linformer']:.2f}",
            "12-045",
        ),
        "leak": Evidence("a token is edited, and an earlier output changes", "12-043"),
        "causal": Evidence("which relatives are causal, asked of the functions", "09-122"),
        "recall": Evidence(
            f"recalled at n = {longest}: exact {exact:.3f} on every seed, Linformer {slots:.3f} at best",
            "12-011",
        ),
        "copy": Evidence("copies: exact attention and a stride that fits write all", "09-113"),
        "zoology": Evidence("recall tells models apart", "", "Arora et al. 2023, arXiv 2312.04927"),
        "search": Evidence("searches do not tell exact, chunks of 128, and fitted E and F apart", "12-124"),
        "saved": Evidence(
            f"fused exact = 1; chunks: time {cut['seconds']:.2f}, memory {cut['bytes']:.2f}; Linformer, "
            f"k = 128: {ours['seconds']:.2f} and {ours['bytes']:.2f}",
            "12-096",
        ),
        "lengths": Evidence("E and F that were fitted at one length, at others", "12-059"),
        "follows": Evidence(
            f"an E that follows the length, fitted: cosine {min(_cosines(FITTED)):.2f} to n = {passages}",
            "12-132",
        ),
        "int8": Evidence(
            f"{passages} tokens, time of exact = 1: weights in 8 bits {over_exact('int8', passages):.2f}, "
            f"cosine {min(_cosines('int8')):.2f}; Linformer, fitted, {over_exact(FITTED, passages):.2f}",
            "12-142",
        ),
        "words": Evidence("counting words is right more often than every network", "08-121"),
        "arena": Evidence(
            f"Text, run again, % right: Transformer {theirs:.1f}, Linformer {low_rank:.1f}",
            "12-068",
            "Xiong et al. 2021, arXiv 2102.03902",
        ),
        "documents": Evidence(
            "long documents: complex models often no better than simple ones",
            "",
            "Park et al. 2022, arXiv 2203.11258",
        ),
        "longformer": Evidence(
            "windows and global tokens for long documents", "", "Beltagy et al. 2020, arXiv 2004.05150"
        ),
    }


def _cosines(way: str) -> list[float]:
    """Of a sentence encoder to the exact one, at each length and in both corpora."""
    rows = read_rows("12_lengths", way=way)
    return [row[name]["cosine"] for row in rows for name in ("docstrings", "reference")]


def over_exact(way: str, n: int) -> float:
    """Seconds of a sentence encoder of 12_seconds, exact = 1; fitting changes no time."""
    (row,) = read_rows("12_seconds", n=n)
    seconds = row["seconds"]
    return seconds[way if way in seconds else way.removesuffix(", fitted")] / seconds["exact"]


def _mean_end(attention: str) -> float:
    """Loss of the last look with the beginning only, mean over seeds."""
    ends = [row["curve"][-1][2] for row in read_rows("12_writing", attention=attention)]
    return sum(ends) / len(ends)


def _over_fused(name: str) -> dict[str, float]:
    """Time and memory of an encoder's vectors, as shares of those with fused exact attention."""
    (row,) = read_rows("12_costs")
    return {what: cost / row["costs"]["fused exact"][what] for what, cost in row["costs"][name].items()}


class DecisionTable:
    """The table of advice for a device: HTML with links in a notebook, lines of text elsewhere."""

    columns = ("your case", "n", *FLAGS.values(), "take", "how far", "from which n", "what says so")

    def __init__(self, device: str = CPU):
        self.device = device

    def rows(self) -> list[tuple[str, ...]]:
        """Need, span, yes, no or either for each flag, what to take, how far that was tried, from which n."""
        turn, found = turn_of(self.device), []
        spans = {"any": "any", "below": f"below {turn:,}", "from": f"from {turn:,}"}
        for rule in rules():
            case = Case(device=self.device, machines=SEVERAL if rule.when.get("split") else 1)
            flags = [{True: "yes", False: "no", None: "either"}[rule.when.get(name)] for name in FLAGS]
            since = SINCE[rule.since].format(**values(case))
            found.append((rule.need, spans[rule.span], *flags, rule.take, rule.reach, since))
        return found

    def __repr__(self) -> str:
        return "\n".join(f"{need}, n {span}: {take}" for need, span, *_, take, _, _ in self.rows())

    def _repr_html_(self) -> str:
        head = "".join(f"<th {LEFT}>{name}</th>" for name in self.columns)
        known, lines = "; ".join(map(_place, devices()[self.device].evidence)), []
        for row, rule in zip(self.rows(), rules(), strict=True):
            cells = [html.escape(cell) for cell in row]
            cells[-1] += f" <small>({known})</small>" if rule.since in ("below", "time") else ""
            cells.append("<br>".join(f"{html.escape(one.shows)} ({_place(one)})" for one in rule.evidence))
            lines.append("".join(f"<td {LEFT}>{cell}</td>" for cell in cells))
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _place(evidence: Evidence) -> str:
    """Where it stands, as HTML, with a link if there is one."""
    place, address = html.escape(evidence.place), html.escape(evidence.address)
    return f"<a href='{address}'>{place}</a>" if address else place
