"""Right answers: random_projections."""

RIGHT = {}
SAME = {}
