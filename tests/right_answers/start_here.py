"""Right answers: start_here."""

RIGHT = {}
SAME = {}
