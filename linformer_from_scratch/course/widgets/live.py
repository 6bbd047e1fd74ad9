"""What every widget of the course is: numbers held in Python, a picture drawn in the browser.

A widget is two files of one stem. The Python file holds the state and the numbers, made once by the course's
own functions; the JavaScript file draws them and does the light arithmetic that a slider asks for. Here is
the smallest, which draws nothing yet:

    class Squares(LiveWidget):
        title = "Squares"
        controls = ("n",)
        n = traitlets.Int(3, min=1, max=9).tag(sync=True)

        def _words(self):
            return f"{self.n}² = {self.n**2}"

        def _figure(self):
            return plots.curves(range(self.n), {"n²": [i**2 for i in range(self.n)]}, "n", "n²", self.title)

    // squares.js
    export default widget(({ model }) => ({
        controls: [slider(model, "n", { label: "n", values: range(1, 9) })],
        draw: () => ({ words: `${model.get("n")}² = ${model.get("n") ** 2}` }),
    }));

The module runs where a kernel is (anywidget) and where none is (host.js, through page.py).
"""

import json
import math
import warnings
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.colours import PALETTE

HERE = Path(__file__).parent
LIVE = "application/vnd.linformer.widget+json"  # in a notebook's output: how to make the widget again


class CannotDraw(Exception):
    """What a learner asked for cannot be shown; the message is one sentence that says why."""


class Number(traitlets.Float):
    """A number between its ends, which nan is not."""

    def validate(self, obj: traitlets.HasTraits, value: Any) -> Any:
        """See `traitlets.TraitType`."""
        if math.isnan(number := super().validate(obj, value)):
            self.error(obj, number)
        return number


class LiveWidget(anywidget.AnyWidget):
    """State and numbers of a widget; its picture is drawn in the browser by the JavaScript file beside it.

    Where no script runs (a saved notebook on a page that only shows pictures) a still picture stands instead.

    Args:
        facts: name -> what the browser needs to know besides data, as JSON can hold it.
        data: name -> array, sent once; see `packed`.
        start: control -> value it opens with; the others open as the class says.

    Attributes:
        controls: names of what a learner can move, in reading order; each is a trait.

    Raises: TypeError if there is no such control; traitlets.TraitError if there is no such value.
    """

    title: ClassVar[str]
    controls: ClassVar[tuple[str, ...]]
    libraries: ClassVar[tuple[str, ...]] = ("d3",)  # of the folder vendor
    helpers: ClassVar[tuple[str, ...]] = ()  # JavaScript files that stand before the widget's own
    _css = (HERE / "view.css").read_text(encoding="utf-8")

    name = traitlets.Unicode().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)
    choices = traitlets.Dict().tag(sync=True)
    defaults = traitlets.Dict().tag(sync=True)
    opening = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)

    def __init_subclass__(cls, **kwargs):
        if "title" in vars(cls):  # and not the class that add_traits makes of it
            cls._esm = "\n".join(map(source, cls.parts()))
        super().__init_subclass__(**kwargs)

    def __init__(self, facts: dict[str, Any] | None = None, data: dict[str, Any] | None = None, **start):
        kind = type(self)
        for name in start:
            if name not in self.controls:
                known = ", ".join(self.controls)
                raise TypeError(f"{kind.__name__} has no control {name!r}; it has {known}")
        defaults = {name: getattr(kind, name).default() for name in self.controls}
        fixed = {"name": kind.__name__, "heading": self.title, "defaults": defaults, "choices": self.menus()}
        super().__init__(facts=facts or {}, data=data or {}, **fixed)
        for name, value in start.items():
            setattr(self, name, value)
        self.opening = self.state()

    @classmethod
    def parts(cls) -> tuple[str, ...]:
        """The JavaScript files that make up this widget's module, in order, without their suffix."""
        libraries, own = (f"vendor/{name}" for name in cls.libraries), cls.__module__.rpartition(".")[2]
        return "palette", *libraries, "shell", "controls", "pictures", "maths", *cls.helpers, own

    @classmethod
    def menus(cls) -> dict[str, Mapping[str, str]]:
        """Control -> {value: what its menu shows}."""
        tagged = {name: getattr(cls, name).metadata.get("choices") for name in cls.controls}
        return {name: choices for name, choices in tagged.items() if choices}

    @property
    def words(self) -> str:
        """The line of numbers of the present state; the browser writes the same. Raises: CannotDraw."""
        return self._words()

    def figure(self) -> Figure:
        """The picture of the present state, drawn by stills.py from the same numbers. Raises: CannotDraw."""
        return self._figure()

    def _words(self) -> str:
        raise NotImplementedError

    def _figure(self) -> Figure:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Control -> its value."""
        return {name: getattr(self, name) for name in self.controls}

    def arguments(self) -> dict[str, Any]:
        """What makes this widget again, without what is as the class has it; JSON can hold it."""
        return {name: value for name, value in self.state().items() if value != self.defaults[name]}

    def synced(self) -> dict[str, Any]:
        """All that the browser needs to know, by trait."""
        names = "name", "heading", "choices", "defaults", "opening", "data", "facts"
        return {name: getattr(self, name) for name in (*self.controls, *names)}

    def still(self) -> bytes:
        """PNG of the present picture with its line of words beneath, for places without a script."""
        png = BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # a reader's script that the font has not
            try:
                figure = self.figure()
            except CannotDraw:
                figure = plots.board([["nothing"]], {"nothing": Axes.set_axis_off}, (8, 0.4))
            stills.captioned(figure, self.caption()).savefig(png, format="png", facecolor="white")
        return png.getvalue()

    def caption(self) -> str:
        """The line of numbers, or why there is nothing to draw."""
        try:
            return self.words
        except CannotDraw as reason:
            return str(reason)

    def described(self) -> str:
        """What the widget shows, in words, for whoever does not see it."""
        return f"{self.title}. {self.caption()}"

    def __repr__(self) -> str:
        """The text that makes this widget with its controls as they are."""
        state = LiveWidget.arguments(self).items()  # of the controls alone
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in state)})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        data |= {"text/plain": repr(self), "image/png": self.still(), LIVE: {"widget": type(self).__name__}}
        # Arguments may be measured: in the metadata they stand where outputs are not compared.
        return data, metadata | {"image/png": {"alt": self.described()}, LIVE: self.arguments()}


@cache
def source(part: str) -> str:
    """The text of a part of a module, read once."""
    if part == "palette":
        return f"const PALETTE = {json.dumps(PALETTE)};"
    return (HERE / f"{part}.js").read_text(encoding="utf-8")


def packed(array: ArrayLike, dtype: str = "float32") -> dict[str, Any]:
    """An array as a widget's module receives it: float32, float16, uint8, int8 or int32, little endian."""
    array = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "shape": list(array.shape), "bytes": array.tobytes()}


def menu(choices: Mapping[str, str], opening: str | None = None) -> traitlets.Enum:
    """A control that is one of the keys; its menu shows the values. It opens with the first by default."""
    trait = traitlets.Enum(list(choices), default_value=opening or next(iter(choices)))
    return trait.tag(sync=True, choices=choices)
