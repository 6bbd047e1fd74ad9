"""Right answers: training."""

RIGHT = {}
SAME = {}
