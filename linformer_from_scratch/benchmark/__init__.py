"""Seconds and bytes of any callable, what this machine can do at best, and the paper's table 3 (chapter 10).

python -m linformer_from_scratch.benchmark --device cuda --out FILE measures everything that chapter 10 shows.
"""

from linformer_from_scratch.benchmark.ceilings import copy_ceiling as copy_ceiling
from linformer_from_scratch.benchmark.ceilings import matmul_ceiling as matmul_ceiling
from linformer_from_scratch.benchmark.memory import peak_bytes as peak_bytes
from linformer_from_scratch.benchmark.statistics import Interval as Interval
from linformer_from_scratch.benchmark.statistics import measured_crossover as measured_crossover
from linformer_from_scratch.benchmark.statistics import ratio as ratio
from linformer_from_scratch.benchmark.statistics import ratio_spread as ratio_spread
from linformer_from_scratch.benchmark.statistics import spread as spread
from linformer_from_scratch.benchmark.timing import flush as flush
from linformer_from_scratch.benchmark.timing import median_seconds as median_seconds
from linformer_from_scratch.benchmark.timing import samples as samples
