"""What every widget of the course is: controls on top, one picture, one line of numbers.

A widget makes its controls, hands them to `Explorer`, and says in `draw` what they show:

    class Squares(Explorer):
        def __init__(self):
            self.n = IntSlider(3, 1, 9, description="n")
            super().__init__([self.n])

        def draw(self):
            card = Card(200, 200)
            card.box((0, 0, 20 * self.n.value, 20 * self.n.value), fill=QUERY)
            return card.image, f"{self.n.value}² = {self.n.value**2}"
"""

from collections.abc import Sequence
from html import escape

from ipywidgets import HTML, Box, Image, SelectionSlider, VBox, Widget
from PIL import Image as Picture

from linformer_from_scratch.widgets.canvas import DENSITY, Card, quick_png, small_png, wrap

SIZE, LEADING, MARGIN = 16, 24, 16  # the line of numbers, CSS pixels
COLUMN = 410  # width of a control: two stand side by side in a window of 1280 pixels


class CannotDraw(Exception):
    """What a learner asked for cannot be shown; the message is one sentence that says why."""


class Explorer(VBox):
    """Controls, one picture and one line of numbers that follow them.

    Where there is no kernel (a saved notebook, an exported page, a slide) it shows a still picture instead.

    Args:
        controls: what a learner can move, in reading order; each has a description.

    Attributes:
        words: the line beneath the picture: its numbers, or why it could not be drawn.

    Raises: ValueError if a control has no description.
    """

    def __init__(self, controls: Sequence[Widget]):
        self.picture = Image(format="png", layout={"max_width": "100%"})
        self.readout = HTML()
        self._drawing = False
        self._image = Card(2 * COLUMN, MARGIN).image  # until there is something to draw
        for control in controls:
            if not control.description:
                raise ValueError(f"{type(control).__name__} of {type(self).__name__} has no description")
            control.style.description_width = "7em"
            control.layout.width = control.layout.width or f"{COLUMN}px"
            control.observe(self._moved, "value")
        super().__init__([Box(controls, layout={"flex_flow": "row wrap"}), self.picture, self.readout])
        self._moved()

    def draw(self) -> tuple[Picture.Image, str]:
        """The picture of the present state, and its numbers as plain text.

        It may set controls; that does not draw again.
        Raises: CannotDraw, with a sentence for the learner; the picture then stays as it was.
        """
        raise NotImplementedError

    def still(self) -> bytes:
        """PNG of the present picture with its line of words beneath, for places without a kernel."""
        width = self._image.width // DENSITY
        lines = wrap(self.words, SIZE, width - 2 * MARGIN)
        strip = Card(width, LEADING * len(lines) + MARGIN)
        for i, line in enumerate(lines):
            strip.text(MARGIN, LEADING * (i + 0.5), line, SIZE)
        both = Picture.new("RGB", (self._image.width, self._image.height + strip.image.height))
        both.paste(self._image)
        both.paste(strip.image, (0, self._image.height))
        return small_png(both)

    def _moved(self, _change=None) -> None:
        if self._drawing:  # draw() itself set a control
            return
        self._drawing = True
        try:
            self._image, words = self.draw()
            self.picture.value = quick_png(self._image)
            self.picture.width = str(self._image.width // DENSITY)
            self._say(words)
        except CannotDraw as reason:
            self._say(str(reason))
        finally:
            self._drawing = False

    def _say(self, words: str) -> None:
        self.words = words
        style = f"font-size: {SIZE}px; line-height: {LEADING}px; padding: 0 {MARGIN}px"
        self.readout.value = f'<div style="{style}">{escape(words)}</div>'

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        bundle["text/plain"] = type(self).__name__  # constant, so that saved outputs can be compared
        bundle["image/png"] = self.still()
        return bundle, {"image/png": {"width": self._image.width // DENSITY, "alt": self.words}}


def powers_of_two(description: str, first: int, last: int, value: int) -> SelectionSlider:
    """A slider over 2^first … 2^last."""
    options = [(f"{2**i:,}", 2**i) for i in range(first, last + 1)]
    return SelectionSlider(options=options, value=value, description=description)
