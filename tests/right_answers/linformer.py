"""Right answers: linformer."""

RIGHT = {}
SAME = {}
