"""Right answers: multihead."""

RIGHT = {}
SAME = {}
