"""The text that a PDF shows which Chromium has printed."""

import re
import zlib
from pathlib import Path

OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?)\nendobj", re.DOTALL)
SHOWN = re.compile(r"/F(\d+) \S+ Tf|<([0-9A-F]+)> Tj")  # a font is named by its object's number
CHARACTERS = re.compile(r"^<(\w{4})> (?:<(\w{4})> )?<(\w+)>$", re.MULTILINE)


def pdf_pages(path: Path) -> list[str]:
    """The text of each page as it is drawn, squeezed: a PDF has no spaces at line ends."""
    objects = {int(number): body for number, body in OBJECT.findall(path.read_bytes())}
    pages = [body for body in objects.values() if b"/Type /Page\n" in body]
    return [_text(_stream(objects, body, b"Contents"), objects) for body in pages]


def squeezed(text: str) -> str:
    """The text without its spaces."""
    return "".join(text.split())


def _stream(objects: dict[int, bytes], body: bytes, name: bytes) -> str:
    """What the stream says to which an object refers by this name."""
    number = int(re.search(rb"/" + name + rb" (\d+) 0 R", body)[1])
    return zlib.decompress(objects[number].partition(b"stream\n")[2]).decode("latin-1")


def _text(drawing: str, objects: dict[int, bytes]) -> str:
    pieces, fonts = [], {}
    for number, glyphs in SHOWN.findall(drawing):
        if number:
            font = fonts.setdefault(number, _characters(_stream(objects, objects[int(number)], b"ToUnicode")))
        else:
            pieces.append("".join(font[glyph] for glyph in re.findall("....", glyphs)))
    return squeezed("".join(pieces))


def _characters(table: str) -> dict[str, str]:
    """Glyph -> the characters that it stands for."""
    found = {}
    for first, last, start in CHARACTERS.findall(table):
        for step in range(int(last or first, 16) - int(first, 16) + 1):
            code = f"{int(start, 16) + step:0{len(start)}x}"
            found[f"{int(first, 16) + step:04X}"] = bytes.fromhex(code).decode("utf-16-be")
    return found
