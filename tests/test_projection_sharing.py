"""Chapter 07's model with shared E and F: what it counts is what exercise 7.4 counts, for all eight ways."""

from itertools import product
from pathlib import Path

import nbformat
import pytest

from linformer_from_scratch.course.exercises.projections import projection_parameters

EIGHT_WAYS = list(product((True, False), repeat=3))  # own E for each: head, role, layer
CHAPTERS = Path(__file__).parents[1] / "chapters"
PAGES = CHAPTERS / "07_projections.ipynb", CHAPTERS / "evidence" / "07_projections.ipynb"
HEADS, LAYERS, SEQ_LEN, PROJ_DIM = 12, 12, 512, 128


@pytest.fixture(scope="module")
def cells():
    found = [cell for page in PAGES for cell in nbformat.read(page, as_version=4).cells]
    return {tag: cell for cell in found for tag in cell.metadata.get("tags", [])}


def test_the_chapter_prints_the_matrices_of_the_papers_ways(cells):
    rows = [row.split() for row in cells["sharing"].outputs[0].text.splitlines()]
    assert [row[-3].strip(",") for row in rows] == ["288", "24", "12", "1"]


def test_the_evidence_prints_all_eight_and_both_counts_agree(cells):
    rows = cells["sharing-counts"].outputs[0].text.splitlines()[1:]
    assert len(rows) == 8
    for row, own in zip(rows, EIGHT_WAYS, strict=True):
        answers, numbers = row.split()[:3], row.split()[3:6]
        assert answers == ["yes" if one else "no" for one in own]
        count = projection_parameters(LAYERS, HEADS, SEQ_LEN, PROJ_DIM, *own)
        assert numbers == [str(count // (SEQ_LEN * PROJ_DIM)), f"{count:,}", f"{count:,}"]
