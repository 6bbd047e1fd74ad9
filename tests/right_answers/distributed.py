"""Right answers: distributed."""

RIGHT = {}
SAME = {}
