"""Right answers: efficient_attention."""

RIGHT = {}
SAME = {}
