"""diagrams.py: every box and arrow is drawn and said."""

import numpy as np
import pytest
from lectures import chapters
from test_chapters import read

from linformer_from_scratch.course.diagrams import Box, flow, linformer_head
from linformer_from_scratch.course.start_here import ACTS, course_map


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts if text.get_text()]


def test_boxes_and_arrows_are_drawn_and_stand_in_the_alternative_text():
    boxes = {"x": Box("X\n(8, 12)", 0, 0), "q": Box("Q", 1, 0), "s": Box("scores\n(8, 8)", 1, 1)}
    figure = flow(boxes, [("x", "q", "W_Q"), ("q", "s")], "One head")
    assert sorted(texts(figure)) == sorted(["X", "(8, 12)", "Q", "scores", "(8, 8)", "W_Q"])
    assert figure.alt == "One head. X: (8, 12) → Q (W_Q); Q → scores: (8, 8)."


def test_an_arrow_runs_from_border_to_border():
    boxes = {"a": Box("A", 0, 0), "b": Box("B", 1, 0), "c": Box("C", 1, 1)}
    (axis,) = flow(boxes, [("a", "b"), ("b", "c")], "Two arrows").axes
    arrows = [(note.xyann, note.xy) for note in axis.texts if note.arrow_patch]
    assert np.array(arrows) == pytest.approx(np.array([[(0.44, 0), (0.56, 0)], [(1, 0.34), (1, 0.66)]]))


def test_in_a_head_of_linformer_nothing_has_two_sides_of_n_tokens():
    shapes = [text for text in texts(linformer_head()) if text.startswith("(")]
    assert len(shapes) == 11 and shapes.count("(k, n)") == 2 and "(n, n)" not in shapes
    assert linformer_head().alt.startswith("One head of Linformer: k slots for n tokens. X: (n, d_model) → Q")


def test_the_map_of_the_course_has_every_chapter_in_order_by_the_name_it_bears_itself():
    names = [name for chapters in ACTS.values() for name in chapters]
    titles = [read(path).cells[0].source.splitlines()[0][2:].replace(" ·", "") for path in chapters()]
    assert names[-1] == "11 Distributed" == titles.pop(11), "the appendix"
    assert names[:-1] == titles
    assert {*names} <= {*texts(course_map())}
