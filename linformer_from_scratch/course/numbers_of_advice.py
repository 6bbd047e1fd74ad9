"""The numbers of chapter 12's advice by name, read off recorded rows, published tables and formulas."""

from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Any

from linformer_from_scratch.benchmark import measured_crossover, published
from linformer_from_scratch.benchmark.layers import FUSED, TOKENS_FIRST
from linformer_from_scratch.cost import DEVICES, Sizes, compress_tokens, floor_seconds, tiled_attention
from linformer_from_scratch.course.recorded import benchmark as records
from linformer_from_scratch.course.recorded import read_rows, select
from linformer_from_scratch.course.recorded.curves import accuracies, kept, recorded
from linformer_from_scratch.course.recorded.lengths import over_exact
from linformer_from_scratch.course.recorded.writers import SEQ_LEN
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes, ulysses_bytes

K = 256  # slots
WORTH = 1.5  # times as fast: what chapter 10 calls worth it
FLASH_TEXTS = 16  # at a time, in what FlashAttention's authors published (benchmark/published.py)
SEVERAL = 8  # machines of the question "and on several?"
FITTED = "windows of n, last layer exact, fitted"  # of 12_lengths


@cache
def numbers() -> dict[str, Any]:
    """Name -> number, as course/decision.yml and the chapter's section of advice ask for it."""
    chosen = {"k": K, "worth": WORTH, "several": SEVERAL}
    return chosen | _devices() | _wire() | _quality() | _encoder() | _long()


def first_worth(speed_ups: Mapping[int, float]) -> int:
    """The first n at which it is at least WORTH times as fast."""
    return min(n for n, times in speed_ups.items() if times >= WORTH)


def _devices() -> dict[str, Any]:
    content = records.recorded_cpu()
    sure = records.table_3(content["rows"], records.surely, FUSED, "forward")  # in four rounds of five
    layer: Any = records.crossing(content["rows"], "forward", TOKENS_FIRST, FUSED)
    rows, machine = select(content["rows"], part="table 3", **{"pass": "forward"}), content["machine"]
    lengths, texts = ({row[name] for row in rows} for name in ("n", "texts"))
    flash_n, milliseconds = published.FLASH_LENGTHS, published.FLASH_FORWARD_MS
    flash, ours = milliseconds["FlashAttention"], milliseconds["Linformer"]
    v100_n = min(published.TABLE_3)
    by_k: Any = published.TABLE_3[v100_n]  # k -> times as fast, times smaller
    million = Sizes(2**20, 1024, 16, K, bytes_per_number=2)
    linformer_ms, exact_ms = (
        1e3 * floor_seconds(steps, DEVICES[-1], million.bytes_per_number)
        for steps in (compress_tokens(million, fused=True), tiled_attention(million))
    )
    return {
        "cpu_crossover": layer.middle,
        "cpu_from_n": first_worth({n: times[K] for n, times in sure.items()}),
        "cpu_shortest": min(lengths),
        "cpu_longest": max(lengths),
        "cpu_texts": max(texts),
        "processor": machine["processor"],
        "cores": machine["cores"],
        "v100_n": v100_n,
        "v100_speed_up": by_k[128][0],
        "a100_from_n": first_worth({n: a / b for n, a, b in zip(flash_n, flash, ours, strict=True)}),
        "a100_crossover": measured_crossover(flash_n, ours, flash),
        "a100_shortest": min(flash_n),
        "a100_longest": max(flash_n),
        "a100_texts": FLASH_TEXTS,
        "h200_linformer_ms": linformer_ms,
        "h200_exact_ms": exact_ms,
    }


def _wire() -> dict[str, Any]:
    text = Sizes(2**17, 1024, 16, K, bytes_per_number=2)
    ring, ulysses, ours = (sent(text, SEVERAL) for sent in (ring_bytes, ulysses_bytes, linformer_bytes))
    return {
        "wire_n": text.n,
        "ring_mb": ring / 1e6,
        "ulysses_mb": ulysses / 1e6,
        "linformer_mb": ours / 1e6,
        "several_split_n": round(text.n * ours / min(ring, ulysses)),  # those two are in proportion to n
    }


def _quality() -> dict[str, Any]:
    recalled = accuracies("recall")
    shortest, longest = min(recalled["full"]), max(recalled["full"])
    text = published.LRA_TASKS.index("Text")
    full, none = (recorded("longer", attention=one, seq_len=128) for one in ("full", "none"))
    gain, about = kept(recorded("longer", seq_len=128, projection_rate=0.1), full, none)  # of chapter 08
    return {
        "recall_shortest": shortest,
        "recall_longest": longest,
        "recall_exact": min(recalled["full"][longest]),
        "recall_linformer": max(recalled["Linformer, learned"][longest]),
        "written_n": SEQ_LEN,
        "gain_kept": 100 * gain,
        "gain_about": 100 * about,
        "sensors_exact": _answered("exact attention"),
        "sensors_linformer": _answered("E and F, from windows"),
        "arena_transformer": published.LRA_XIONG["Transformer"][text],
        "arena_linformer": published.LRA_XIONG["Linformer"][text],
    }


def _encoder() -> dict[str, Any]:
    (row,), int8 = read_rows("12_costs"), read_rows("12_lengths", way="int8")  # at all lengths
    passages, costs = row["n"], row["costs"]
    shares: dict[str, Any] = {}
    for short, name in (("chunks", "fused exact, chunks of 128"), ("slots", "Linformer, k = 128")):
        shares |= {f"{short}_{what}": cost / costs["fused exact"][what] for what, cost in costs[name].items()}
    return shares | {
        "passages": passages,
        "fitted_seconds": over_exact(FITTED, passages).middle,
        "int8_cosine": min(row[corpus]["cosine"] for row in int8 for corpus in ("docstrings", "reference")),
        "int8_seconds": over_exact("int8", passages).middle,
    }


def _long() -> dict[str, Any]:
    rows = read_rows("12_long_costs")
    lengths = [row["n"] for row in rows]
    seconds = rows[lengths.index(max(lengths))]["seconds"]
    return {
        "long_shortest": min(lengths),
        "long_longest": max(lengths),
        "long_chunks": seconds["mean of chunks"] / seconds["exact"],
        "long_slots": seconds["128 slots"] / seconds["exact"],
    }


def _answered(arm: str) -> float:
    """Share of right answers of a layer in chapter 14's race on the sensors, mean over seeds."""
    return fmean(row["score"] for row in read_rows("14_fields", task="sensors", arm=arm))
