"""Right answers: limits."""

RIGHT = {}
SAME = {}
