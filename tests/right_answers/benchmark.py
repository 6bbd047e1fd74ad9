"""Right answers: benchmark."""

RIGHT = {}
SAME = {}
