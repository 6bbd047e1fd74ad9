"""The colours of a widget, on a light page and on a dark one; those of still pictures are in plots.py."""

from linformer_from_scratch.course import plots

PALETTE = {  # colours of a page on white, and of one on black
    "light": {"ink": plots.INK, "grey": plots.GREY, "edge": plots.EDGE, "paper": "#FFFFFF"}
    | {"query": plots.QUERY, "key": plots.KEY, "value": plots.VALUE, "lines": plots.LINES},
    "dark": {"ink": "#E8E8E8", "grey": "#A9AFB8", "edge": "#4A505A", "paper": "#16181C"}
    | {"query": "#86B6F2", "key": "#F2A25C", "value": "#6FC795"}
    | {"lines": ("#86B6F2", "#F2A25C", "#6FC795", "#C3A1E3", "#A9AFB8", "#F08CB8", "#E0C050", "#E8E8E8")},
}
