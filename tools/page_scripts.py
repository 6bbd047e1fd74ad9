"""The model of page_model.py as scripts: a page on disk may fetch nothing, but it may load scripts.

program.js holds what runs in a worker; the others hold the files, compressed, in base64, in pieces of similar
size, so that a reader sees how far it is. A page gets what `lend` returns as its constant MODEL: see waking.
"""

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from kept import ENCODER, kept

from linformer_from_scratch.course.widgets.live import source
from linformer_from_scratch.pretrained.weights import model_file

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = ROOT / "tools" / "vendor" / "onnxruntime"
FILES = "exact.onnx", "slots.onnx", "weights.bin"
READER = "maths", "wordpiece", "sentences", "encoder"  # JavaScript behind it, of the widgets
PIECE = 3 * 2**20  # bytes in a script; a multiple of 3, so that pieces in base64 can be told apart again


def lend(folder: Path) -> dict[str, Any]:
    """Write the scripts; return their names, each with the length of the text that it holds, and their size.

    The model is made first, where it is not kept. Returns {"scripts": [[name, characters], …],
    "megabytes": …}.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names, written = [], 0
    for name, content in scripts().items():
        script = folder / f"{name}.js"
        script.write_text(f'lent["{name}"] = {json.dumps(content)};', encoding="utf-8")
        written += script.stat().st_size
        names.append([name, sum(map(len, content.values()))])
    return {"scripts": names, "megabytes": round(written / 1e6)}


def model() -> Path:
    """The folder of the model's files; they are made where what they are made of has changed.

    Raises: subprocess.CalledProcessError if they cannot be made; what was printed says why.
    """
    exporter = [ROOT / "tools" / name for name in ("page_model.py", "eight_bits.py")]
    return kept("model", exporter + ENCODER, export, ("torch", "onnxscript", "onnx-ir"))


def export(folder: Path) -> None:
    """Make the model's files, in a process of its own."""
    print("making the model that pages run: a minute, once", flush=True)
    command = [sys.executable, ROOT / "tools" / "page_model.py", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def as_expression(module: str) -> str:
    """A module as an expression for the object of what it exports.

    A worker of a page on disk can be no module and import none. What this one would load from its own
    address, it is given.
    """
    body, exported = re.fullmatch(r"(.*)export\{(.*)\};\s*(?://.*)?\s*", module, re.DOTALL).groups()
    members = ", ".join(re.sub(r"(\S+) as (\S+)", r"\2: \1", one) for one in exported.split(","))
    body = body.replace("import.meta.url", '"https://nowhere.invalid/"')
    return f'(() => {{\n"use strict";\n{body}\nreturn {{ {members} }};\n}})()'


def scripts() -> dict[str, dict[str, str]]:
    """Script -> what it holds: the program's parts, or a piece of a file."""
    made = model()
    files = {name: gzip.compress((made / name).read_bytes(), mtime=0) for name in FILES}
    files["vocab.txt"] = gzip.compress(model_file("vocab.txt").read_bytes(), mtime=0)
    files["ort.wasm"] = (RUNTIME / "ort-wasm-simd-threaded.wasm.gz").read_bytes()
    runtime = as_expression((RUNTIME / "ort.wasm.bundle.min.mjs").read_text(encoding="utf-8"))
    program = {"program": "\n".join([f"const ort = {runtime};", *map(source, READER)])}
    pieces = [
        {"file": name, "base64": base64.b64encode(packed[start : start + PIECE]).decode()}
        for name, packed in files.items()
        for start in range(0, len(packed), PIECE)
    ]
    return {"program": program} | {f"piece_{i}": piece for i, piece in enumerate(pieces, 1)}
