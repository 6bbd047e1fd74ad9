"""Figures of a chapter's page: pictures, live pictures and clips, numbered in order, each with a caption."""

import re
from itertools import count

from nbformat import NotebookNode

CLIP = re.compile(r'<video ([^>]*)src="([^"]+)\.mp4"([^>]*></video>)\s*(<img [^>]*alt="([^"]+)">)')
KIND = re.compile(r"^(The last moment of the clip: |(Small h|H)eat maps, )")  # one sees that
MARKUP = re.compile(r"([\\`*_{}\[\]<>$#|~])")
LONG = 160  # characters; of longer words the caption has the first sentence


class Figures:
    """Numbers the figures of one chapter.

    Args:
        chapter: its number; before that of a page of evidence stands an E.
    """

    def __init__(self, chapter: str):
        self._numbers = (f"Figure {chapter}.{i}" for i in count(1))

    def picture(self, cell: NotebookNode, alt: str) -> None:
        """Have a cell's picture stand as a figure, as myst-nb makes one."""
        words = MARKUP.sub(r"\\\1", _in_short(alt))
        figure = {"caption": f"**{next(self._numbers)}** {words}"}
        cell.metadata.setdefault("mystnb", {}).update(image={"alt": alt}, figure=figure)

    def live(self, html: str, title: str) -> str:
        """A live picture as a figure."""
        return f"<figure>{html}{self._caption(title)}</figure>"

    def clips(self, source: str) -> str:
        """Markdown whose clips are figures, and load when they are played."""
        return CLIP.sub(self._clip, source)

    def _clip(self, found: re.Match) -> str:
        marks, name, end, still, alt = found.groups()
        video = f'<video {marks}preload="none" poster="{name}.png" src="{name}.mp4"{end}'
        return f'<figure class="clip">{video} {still}{self._caption(alt)}</figure>'

    def _caption(self, words: str) -> str:
        return f"<figcaption><p><strong>{next(self._numbers)}</strong> {_in_short(words)}</p></figcaption>"


def _in_short(words: str) -> str:
    """Words that begin with a capital and end as a sentence; of many the first sentence."""
    words = KIND.sub("", words)
    words = words if len(words) < LONG else words.partition(". ")[0]
    first = words[:1].upper() if words[:1].isascii() else words[:1]  # σ stays σ
    return f"{first}{words[1:].rstrip('.')}{'' if words.endswith(('?', '!')) else '.'}"
