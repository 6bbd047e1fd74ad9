"""Right answers: cost."""

RIGHT = {}
SAME = {}
