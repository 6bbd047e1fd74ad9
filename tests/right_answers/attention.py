"""Right answers: attention."""

RIGHT = {}
SAME = {}
