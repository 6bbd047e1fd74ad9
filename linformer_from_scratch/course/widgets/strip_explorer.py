"""Linformer at first sight: the square and the strip while a text grows. Drawn by strip_explorer.js."""

import traitlets

from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.growth import quantity
from linformer_from_scratch.course.widgets.live import LiveWidget

LENGTHS = [2**i * eighths // 8 for i in range(9, 17) for eighths in range(8, 16)] + [2**17]  # 512 … 131,072
DIMS = (64, 128, 256, 512)
NAMES = {512: "a page", 2048: "an article", 8192: "a chapter", 32768: "a short book", 131072: "a novel"}
HEADS, D_HEAD, BYTES = 12, 32, 4  # of one layer of the course's pretrained model; bytes of a number
MEMORY = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
TIME = {"ms": 1e-3, "s": 1, "min": 60, "h": 3600}


class StripExplorer(LiveWidget):
    """One layer's maps of a text of n tokens: n×n numbers a head, or n×k, to one scale.

    The browser adds how long its machine takes for them, which it measures itself.
    """

    title = "The square and the strip"
    controls = ("n", "proj_dim")
    helpers = ("growth",)

    n = traitlets.Int(4096, min=LENGTHS[0], max=LENGTHS[-1]).tag(sync=True)
    proj_dim = traitlets.Enum(DIMS, default_value=256).tag(sync=True)

    def __init__(self, **start):
        units = {"memory_units": MEMORY, "time_units": TIME}
        sizes = {"lengths": LENGTHS, "dims": [*DIMS], "names": NAMES, "heads": HEADS, "d_head": D_HEAD}
        super().__init__(units | sizes, **start)

    @property
    def memory(self) -> dict[str, int]:
        """ "square", "strip" -> bytes of all maps of a layer."""
        return {name: BYTES * HEADS * numbers for name, numbers in self._numbers.items()}

    @property
    def work(self) -> dict[str, int]:
        """ "square", "strip" -> multiplications with an addition; those of the strip include EK and FV."""
        once = {name: HEADS * D_HEAD * numbers for name, numbers in self._numbers.items()}
        return {"square": 2 * once["square"], "strip": 4 * once["strip"]}

    def _words(self) -> str:
        n, k, memory = self.n, self.proj_dim, self.memory
        return (
            f"A layer's {HEADS} squares of {n:,} × {n:,} numbers take {quantity(memory['square'], MEMORY)}, "
            f"its strips of {n:,} × {k} {quantity(memory['strip'], MEMORY)}: "
            f"{'no' if n == k else f'{n / k:.3g} times'} less."
        )

    def _figure(self) -> stills.Figure:
        lengths = [length for length in (self.n // 4, self.n // 2, self.n) if length >= self.proj_dim]
        wall = stills.wall(lengths or [self.n], self.proj_dim)
        return stills.board([["wall"]], {"wall": wall}, (7.4, 4.0))

    @property
    def _numbers(self) -> dict[str, int]:
        return {"square": self.n * self.n, "strip": self.n * self.proj_dim}
