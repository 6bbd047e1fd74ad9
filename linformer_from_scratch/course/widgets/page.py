"""Widgets in a page without a kernel: their still pictures, their state, the scripts that make them live."""

import base64
import gzip
import json
from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Any

from linformer_from_scratch.course import widgets
from linformer_from_scratch.course.widgets.live import LIVE, LiveWidget, source

PAGE = "body { font: 16px/1.5 system-ui, sans-serif; margin: 1em auto; max-width: 80em; padding: 0 1em }"

ALL_AT_ONCE = """
for (const element of document.querySelectorAll(".live-widget")) {
  enliven(element, () => JSON.parse(element.querySelector("script").textContent));
}
"""


def widget_in(output: dict[str, Any]) -> LiveWidget | None:
    """The widget that a notebook's output shows, made again, once a process; None where it shows none.

    Args:
        output: an output of a code cell, as nbformat reads it.
    """
    live = output.get("data", {}).get(LIVE)
    return live and _made(live["widget"], json.dumps(output["metadata"][LIVE]))


@cache
def _made(name: str, arguments: str) -> LiveWidget:
    return getattr(widgets, name)(**json.loads(arguments))


def embedded(widget: LiveWidget) -> str:
    """HTML of one widget: its still picture until it lives. The page needs `scripts` once, at its end."""
    png = base64.b64encode(widget.still()).decode()
    words = escape(widget.described(), quote=True)
    return (
        f'<div class="live-widget"><img src="data:image/png;base64,{png}" alt="{words}">'
        f'<script type="application/json">{_inside_a_script(as_json(widget))}</script></div>'
    )


def as_json(widget: LiveWidget) -> str:
    """What a page needs to make a widget live, as JSON: the names of its parts, and its state."""
    return json.dumps({"parts": widget.parts(), "state": widget.synced()}, default=in_text)


def scripts(shown: Iterable[type[LiveWidget]], model: dict[str, Any] | None = None) -> str:
    """HTML that makes the widgets of these kinds live: each of their parts once, the style, and the host.

    Args:
        shown: kinds of widgets.
        model: as in `host`.
    """
    parts = _inside_a_script(json.dumps({part: source(part) for kind in shown for part in kind.parts()}))
    program = f"const PARTS = {parts};\n{host(model)}{ALL_AT_ONCE}"
    return f"<style>{LiveWidget._css}</style>\n<script>{{\n{program}}}</script>"


def host(model: dict[str, Any] | None) -> str:
    """JavaScript of a page without a kernel; model: the scripts of the model that reads a reader's own text.

    That is what tools/page_scripts.py gives, with {"folder": where they lie, as seen from the page}.
    """
    return f"const MODEL = {json.dumps(model)};\n{source('waking')}\n{source('host')}"


def page(shown: Iterable[LiveWidget], model: dict[str, Any] | None = None) -> str:
    """A whole page of widgets, to open from disk; model: as in `host`."""
    shown = list(shown)
    body = "\n".join(map(embedded, shown))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Widgets</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{PAGE}</style></head>\n'
        f"<body><main><h1>Widgets</h1>\n{body}</main>\n"
        f"{scripts({type(widget) for widget in shown}, model)}\n</body></html>"
    )


def in_text(value: Any) -> Any:
    """Bytes as JSON carries them; host.js makes them bytes again.

    Raises: TypeError for anything else.
    """
    if isinstance(value, bytes):
        return {"gzip": base64.b64encode(gzip.compress(value, mtime=0)).decode()}
    raise TypeError(f"{type(value).__name__} cannot travel in a page")


def _inside_a_script(text: str) -> str:
    return text.replace("</", "<\\/")
