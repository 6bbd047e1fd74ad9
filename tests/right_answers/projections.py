"""Right answers: projections."""

RIGHT = {}
SAME = {}
