"""A white card to draw on: text, bars, smooth lines and heat maps, fast enough to follow a slider.

A new matplotlib figure takes longer than a learner's hand; these pictures take a few milliseconds.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageColor, ImageDraw, ImageFont

from linformer_from_scratch.plots import INK, WEIGHTS

DENSITY = 2  # pixels of the PNG per CSS pixel, so that text stays crisp on a projector
FINER = 2  # lines are drawn this much larger again and then reduced, which smooths their edges


class Card:
    """A white card, measured in CSS pixels from its upper left corner; a box is (left, top, right, bottom).

    Args:
        width, height: CSS pixels; `image` is DENSITY times as many pixels each way.
    """

    def __init__(self, width: int, height: int):
        self.image = Image.new("RGB", (width * DENSITY, height * DENSITY), "white")
        self._pen = ImageDraw.Draw(self.image)

    def text(
        self, x: float, y: float, words: str, size: float = 15, colour=INK, anchor: str = "lm", bold=False
    ) -> None:
        """Write one line at (x, y); the anchor is Pillow's: "lm" starts, "mm" centres, "rm" ends it there."""
        self._pen.text((x * DENSITY, y * DENSITY), words, colour, _font(size, bold), anchor)

    def slanted(self, x: float, y: float, words: str, size: float = 15, colour=INK, bold=False) -> None:
        """Write one line that begins at (x, y) and climbs to the right at 60°, as over a map's columns."""
        mask = _slanted_mask(words, size, bold)
        corner = round(x * DENSITY - mask.width / 2), round(y * DENSITY - mask.height / 2)
        self.image.paste(ImageColor.getrgb(colour), corner, mask)

    def box(self, box: Sequence[float], fill=None, outline=None, width: float = 1) -> None:
        """Draw a rectangle; its outline lies inside the box."""
        left, top, right, bottom = _pixels(box)
        if right > left and bottom > top:
            edge = round(width * DENSITY)
            self._pen.rectangle((left, top, right - 1, bottom - 1), fill, outline, edge)

    def lines(self, box: Sequence[float], lines: Iterable[tuple[ArrayLike, str, float]]) -> None:
        """Clear a box and draw smooth lines in it, later ones on top.

        Args:
            lines: (points (m, 2), colour, width), all in CSS pixels of the card.
        """
        left, top, right, bottom = _pixels(box)
        layer = Image.new("RGB", ((right - left) * FINER, (bottom - top) * FINER), "white")
        pen = ImageDraw.Draw(layer)
        for points, colour, width in lines:
            points = (np.asarray(points, dtype=float) * DENSITY - (left, top)) * FINER
            pen.line(points.ravel().tolist(), colour, round(width * DENSITY * FINER), joint="curve")
        self.image.paste(layer.reduce(FINER), (left, top))

    def heatmap(
        self,
        box: Sequence[float],
        values: ArrayLike,
        limits: tuple[float, float] = (0.0, 1.0),
        colours: str = WEIGHTS,
    ) -> None:
        """Fill a box with a map (n, m): n rows down, m columns across.

        Args:
            limits: the values that get the first and the last colour; what lies outside gets the nearer one.
            colours: name of a matplotlib colour map.
        """
        low, high = limits
        shades = np.clip((np.asarray(values, dtype=float) - low) / (high - low), 0, 1) * 255
        cells = Image.fromarray(_colour_table(colours)[shades.round().astype(np.uint8)])
        left, top, right, bottom = _pixels(box)
        self.image.paste(cells.resize((right - left, bottom - top), Image.Resampling.NEAREST), (left, top))


def quick_png(image: Image.Image) -> bytes:
    """PNG bytes of an RGB picture, written for speed.

    Pillow tries five filters on every row; for flat pictures the difference to the row above is enough, and
    takes a third of the time.
    """
    pixels = np.asarray(image).reshape(image.height, -1)
    rows = np.full((image.height, pixels.shape[1] + 1), 2, dtype=np.uint8)  # each row begins with its filter
    rows[:, 1:] = np.diff(pixels, axis=0, prepend=np.zeros_like(pixels[:1]))
    header = struct.pack(">2I5B", *image.size, 8, 2, 0, 0, 0)  # 8 bits, RGB
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def small_png(image: Image.Image) -> bytes:
    """PNG bytes of a picture, as few as can be: for files."""
    stream = BytesIO()
    image.save(stream, "png", optimize=True)
    return stream.getvalue()


def swing(start: tuple[float, float], end: tuple[float, float]) -> np.ndarray:
    """Points (25, 2) of a curve that leaves its start and reaches its end horizontally."""
    t = np.linspace(0, 1, 25)
    ease = t * t * (3 - 2 * t)
    return np.stack([start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * ease], axis=1)


def tint(colour: str, strength: float) -> str:
    """A colour thinned with white: 0 is white, 1 the colour itself."""
    parts = (round(255 + (part - 255) * strength) for part in ImageColor.getrgb(colour))
    return "#" + "".join(f"{part:02x}" for part in parts)


def shorten(words: str, size: float, width: float) -> str:
    """The words, or as much of their beginning as fits the width (CSS pixels), with an ellipsis."""
    if text_width(words, size) <= width:
        return words
    while words and text_width(words + "…", size) > width:
        words = words[:-1]
    return words + "…"


def wrap(words: str, size: float, width: float) -> list[str]:
    """Words broken into lines no wider than the width (CSS pixels)."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def text_width(words: str, size: float, bold: bool = False) -> float:
    """Width of one line in CSS pixels."""
    return _font(size, bold).getlength(words) / DENSITY


def _pixels(box: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(edge * DENSITY) for edge in box)


@cache
def _font(size: float, bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"  # matplotlib brings it on every system
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts/ttf" / name, size * DENSITY)


@lru_cache(maxsize=512)
def _slanted_mask(words: str, size: float, bold: bool) -> Image.Image:
    font = _font(size, bold)
    reach = round(font.getlength(words) + size * DENSITY)
    mask = Image.new("L", (2 * reach, 2 * reach))
    ImageDraw.Draw(mask).text((reach, reach), words, 255, font, "lm")
    return mask.rotate(60, Image.Resampling.BICUBIC)


@cache
def _colour_table(name: str) -> np.ndarray:
    return matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3]
