"""Right answers: low_rank."""

RIGHT = {}
SAME = {}
