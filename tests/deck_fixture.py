"""A notebook with one slide for each thing that a chapter may show."""

import base64
import io
import shutil
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

CLIP = Path(__file__).parents[1] / "chapters" / "scenes" / "media" / "01_attention.mp4"
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def prose(source, kind=None):
    """A markdown cell; kind is its slideshow mark."""
    return _marked(new_markdown_cell(source), kind)


def notes(minute, source):
    """What only the teacher sees."""
    return prose(f"## minute {minute} · {{}}\n\n{source}", "notes")


def code(source, *outputs, kind=None, tags=()):
    """A code cell that has been run."""
    cell = _marked(new_code_cell(source, execution_count=1, outputs=list(outputs)), kind)
    cell.metadata.tags = list(tags)
    return cell


def result(**data):
    """What a cell returns, by type: text_plain, text_html, image_png."""
    return new_output("execute_result", {key.replace("_", "/"): value for key, value in data.items()})


def widget(**data):
    """What a cell returns that shows a widget."""
    output = result(text_plain="Explorer()", **data)
    output.data[WIDGET] = {"model_id": "0", "version_major": 2, "version_minor": 0}
    return output


def live(shown):
    """What a cell returns that shows a widget of the course, as a kernel sends it."""
    data, metadata = shown._repr_mimebundle_()
    data["image/png"] = base64.b64encode(data["image/png"]).decode()
    return new_output("display_data", data, metadata=metadata)


def png(width, height):
    """A picture, as notebooks keep it."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), "#2F6DB5").save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def write(folder, cells):
    """The notebook of these cells, with its notes, a clip and its still beside it; returns its path."""
    media = folder / "scenes" / "media"
    media.mkdir(parents=True, exist_ok=True)
    for suffix in (".mp4", ".png"):
        shutil.copy(CLIP.with_suffix(suffix), media / f"clip{suffix}")
    told, shown, begun = [], [], ""
    for cell in cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        begun = cell.id if kind == "slide" else begun
        if kind == "notes":
            told.append(cell.source.format(begun))
        else:
            shown.append(cell)
    (folder / "notes").mkdir(exist_ok=True)
    (folder / "notes" / "09_everything.md").write_text("\n\n".join(told), encoding="utf-8")
    path = folder / "09_everything.ipynb"
    nbformat.write(new_notebook(cells=shown, metadata=KERNEL), path)
    return path


def _marked(cell, kind):
    if kind:
        cell.metadata.slideshow = {"slide_type": kind}
    return cell


def _question(text):
    options = "<li>a part of it</li>" * 4
    wrong, right = (f"<li>{mark} {'Reasons take room on a slide. ' * 4}</li>" for mark in ("✗", "<b>✓</b>"))
    verdicts = wrong + right + 2 * wrong
    answer = f'<details><summary>Answer</summary><ol type="a">{verdicts}</ol></details>'
    return f'<details name="quiz"><summary>{text}</summary><ol type="a">{options}</ol>{answer}</details>'


TITLE = "# 09 · Everything\n\n**Does it show?** · 50 minutes\n\n- one thing;\n- another."
ROLES = """## Queries meet keys: $QK^\\top$

A <span class="query">query</span>, a <span class="key">key</span> and a <span class="value">value</span>."""
FORMULA = """$$\\mathrm{softmax}\\Big(\\frac{QK^\\top}{\\sqrt d}\\Big) V$$

It costs `$5` in [chapter 02](02_multihead.ipynb#why), see [arXiv](https://arxiv.org/abs/2006.04768)."""
NUMBERS = "| $n$ | map |\n| --- | --- |\n| 8 | 64 |"
FUNCTION = """def double(x):
    return 2 * x  # twice


print("a line as long as the house allows it to be, one hundred and ten columns", double(double(21)))"""
TABLE = """<table class="dataframe"><thead><tr><th></th><th>n</th></tr></thead>
<tbody><tr><th>0</th><td>8</td></tr></tbody></table>"""
PREDICT = "## A question waits for its answer\n\n**Predict.** How much is 6 · 7?"
CLIP_CELL = """## A clip plays

<video controls muted loop width="480" src="scenes/media/clip.mp4"></video>

![The last moment of the clip](scenes/media/clip.png)"""
QUIZ = f'<div class="quiz">{"".join(_question(f"{i}. How much of it?") for i in range(1, 6))}</div>'

BET = '<ol class=\'bet\' data-bet=\'{"id": "9a", "right": 1}\'><li>13</li><li>42</li></ol>'

EVERYTHING = [
    prose(TITLE, "slide"),
    notes(0, "Say *hello*, and that $n = 8$."),
    code("import secret_module", kind="skip"),
    prose(ROLES, "slide"),
    prose(FORMULA, "fragment"),
    prose(NUMBERS, "fragment"),
    notes(2, "Ask first."),
    prose("## Code is read with what it prints", "slide"),
    code(
        FUNCTION,
        new_output("stream", name="stdout", text="   n       n×n\n   8        64\n"),
        new_output("stream", name="stderr", text="UserWarning: not for the room"),
        result(text_plain=f"[{'0.25, ' * 24}0.75]"),
    ),
    code("table", result(text_html=TABLE, text_plain="   n\n0  8")),
    notes(5, "Wrong answer to expect: 16."),
    prose("## A picture takes the room that is left", "slide"),
    code("plots.heatmaps(…)", result(image_png=png(600, 600), text_plain="a map")),
    notes(8, "Look."),
    prose("## A widget leaves its picture, and a way to the live one", "slide"),
    code("explorer = Explorer()\nexplorer", widget(image_png=png(990, 580)), tags=["no-code"]),
    notes(11, "Open it."),
    prose(CLIP_CELL, "slide"),
    notes(15, "Twice."),
    prose(PREDICT, "slide"),
    code('bet("9a")', widget(text_html=BET), tags=["no-code"]),
    code("6 * 7", result(text_plain="forty-two"), kind="fragment", tags=["answer"]),
    prose("So it is not 13."),
    notes(16, "Wrong answer to expect: 13."),
    prose("## Quiz", "slide"),
    code('quiz("09")', widget(text_html=QUIZ), tags=["no-code"]),
    notes(18, "Hands up."),
]
