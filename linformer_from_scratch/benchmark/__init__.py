"""Seconds and bytes of any callable, what this machine can do at best, and the paper's table 3 (chapter 10).

python -m linformer_from_scratch.benchmark --device cuda --out FILE measures everything that chapter 10 shows.
"""

from linformer_from_scratch.benchmark.ceilings import copy_ceiling, matmul_ceiling
from linformer_from_scratch.benchmark.memory import peak_bytes
from linformer_from_scratch.benchmark.statistics import (
    Interval,
    coverage,
    measured_crossover,
    ratio,
    ratio_spread,
    ratios,
    spread,
)
from linformer_from_scratch.benchmark.timing import flush, median_seconds, samples

__all__ = [
    "Interval",
    "copy_ceiling",
    "coverage",
    "flush",
    "matmul_ceiling",
    "measured_crossover",
    "median_seconds",
    "peak_bytes",
    "ratio",
    "ratio_spread",
    "ratios",
    "samples",
    "spread",
]
