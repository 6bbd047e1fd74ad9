"""What the live pictures of the book need: a still each, and numbers that load when a reader comes near."""

import hashlib
import json
import struct
from html import escape
from pathlib import Path
from typing import Any

from linformer_from_scratch.course.widgets.live import LiveWidget, source
from linformer_from_scratch.course.widgets.page import as_json, host

NEAR = Path(__file__).parent / "static" / "near.js"


class Shelf:
    """A folder with one still and one file of numbers for each widget, and the program of all of them.

    Args:
        folder: where the files go; made if it is not there.
        url: the folder's address from a page with a live picture.
    """

    def __init__(self, folder: Path, url: str):
        self.folder, self.url = folder, url
        self.parts: dict[str, str] = {}  # of their programs
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, widget: LiveWidget, still: bytes) -> str:
        """Write a widget's files; return the HTML of its place on a page.

        still: PNG of the picture that it leaves where no script runs.
        """
        state = as_json(widget)
        name = hashlib.sha256(state.encode()).hexdigest()[:12]
        self.parts |= {part: source(part) for part in widget.parts()}
        (self.folder / f"{name}.js").write_text(f'held["{name}"] = {state};', encoding="utf-8")
        (self.folder / f"{name}.png").write_bytes(still)
        width, height = struct.unpack(">II", still[16:24])  # a PNG's first chunk
        return (
            f'<div class="live-widget" data-held="{name}"><img src="{self.url}/{name}.png" width="{width}" '
            f'height="{height}" loading="lazy" alt="{escape(widget.described(), quote=True)}"></div>'
        )

    def close(self, model: dict[str, Any] | None = None) -> None:
        """Write the program: host.js with what wakes a widget, and the parts it is made of.

        model: as in `page.host`, as seen from the shelf's folder.
        """
        (self.folder / "parts.js").write_text(f"held.parts = {json.dumps(self.parts)};", encoding="utf-8")
        style = json.dumps(LiveWidget._css)
        program = f"const STYLE = {style};\n{host(model)}\n{NEAR.read_text(encoding='utf-8')}"
        (self.folder / "host.js").write_text(f"window.held = {{}};\n{{\n{program}}}\n", encoding="utf-8")
