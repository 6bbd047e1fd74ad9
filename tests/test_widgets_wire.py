"""Widget 10 moved from Python: its numbers are worked out by hand, and its words stay true on short texts."""

import math
import statistics
import time
from itertools import product

import pytest

from linformer_from_scratch.plots import INK
from linformer_from_scratch.widgets import WireExplorer
from linformer_from_scratch.widgets.canvas import DENSITY, Card, text_width
from linformer_from_scratch.widgets.wire_explorer import BOTTOM, LEFT, LOOKS, RIGHT, TOP, in_bytes, times

ENDS = [
    {"ranks": ranks, "n": n, "proj_dim": k, "d_model": d, "shared": shared}
    for ranks, n, k, d, shared in product((2, 256), (1024, 2**20), (64, 1024), (256, 4096), (False, True))
]


def state(widget):
    return widget.picture.value, widget.words


def move(explorer, **values):
    for name, value in values.items():
        getattr(explorer, name).value = value
    return explorer


@pytest.fixture
def drawn(monkeypatch):
    """Name of a Card's method -> (args, named) of each call for the latest card."""
    calls = {"text": [], "box": [], "lines": []}

    def recording(name):
        method = getattr(Card, name)

        def record(self, *args, **named):
            calls[name].append((args, named))
            return method(self, *args, **named)

        return record

    def forget(self, *args, method=Card.__init__):
        for seen in calls.values():
            seen.clear()
        method(self, *args)

    for name in calls:
        monkeypatch.setattr(Card, name, recording(name))
    monkeypatch.setattr(Card, "__init__", forget)
    return calls


@pytest.mark.parametrize(
    ("ranks", "n", "k", "d", "shared", "sent", "tokens", "matrix_bytes", "above"),
    [
        (8, 131072, 256, 1024, False, (469762048, 117440512, 1835008), 16384, 16777216, (512, 2048)),
        (8, 131072, 256, 1024, True, (469762048, 117440512, 917504), 16384, 8388608, (256, 1024)),
        (2, 1024, 64, 256, False, (524288, 524288, 65536), 512, 131072, (128, 128)),
        (256, 1024, 1024, 4096, True, (16711680, 130560, 16711680), 4, 8192, (1024, 131072)),
    ],
)
def test_what_a_rank_sends_and_holds_by_hand(ranks, n, k, d, shared, sent, tokens, matrix_bytes, above):
    explorer = move(WireExplorer(), ranks=ranks, n=n, proj_dim=k, d_model=d, shared=shared)
    assert explorer.sent == dict(zip(("ring attention", "Ulysses", "Linformer"), sent, strict=True))
    assert explorer.exchanges == {"ring attention": ranks - 1, "Ulysses": 4, "Linformer": 1}
    assert (explorer.tokens, explorer.matrix_bytes) == (tokens, matrix_bytes)
    assert explorer.above == dict(zip(("ring attention", "Ulysses"), above, strict=True))


def test_it_opens_on_131072_tokens_on_eight_ranks():
    explorer = WireExplorer()
    assert (explorer.ranks.value, explorer.n.value, explorer.proj_dim.value) == (8, 131072, 256)
    assert (explorer.d_model.value, explorer.shared.value) == (1024, False)
    assert explorer.words == (
        "131,072 tokens on 8 ranks, a layer's forward pass: Linformer sends 1.84 MB whatever n; "
        "ring attention 470 MB, 256 times as much; Ulysses 117 MB, 64 times as much. "
        "Linformer sends less than both above n = 2,048, as here. "
        "A rank's columns of E and F, 16.8 MB, do grow with n."
    )


def test_every_control_has_its_label_and_its_range():
    controls = WireExplorer().children[0].children
    assert [control.description for control in controls] == [
        "Ranks P",
        "Tokens n",
        "Slots k",
        "d_model",
        "E = F",
    ]
    ranges = [[value for _, value in control.options] for control in controls[:-1]]
    assert [(r[0], r[-1]) for r in ranges] == [(2, 256), (1024, 2**20), (64, 1024), (256, 4096)]


def test_twice_the_text_doubles_everything_but_what_linformer_sends():
    short, long = move(WireExplorer(), n=2**16), move(WireExplorer(), n=2**17)
    assert long.sent["Linformer"] == short.sent["Linformer"]
    for name in ("ring attention", "Ulysses"):
        assert long.sent[name] == 2 * short.sent[name]
    assert (long.tokens, long.matrix_bytes) == (2 * short.tokens, 2 * short.matrix_bytes)


def test_where_linformer_sends_more_the_words_say_so():
    explorer = move(WireExplorer(), ranks=256, n=1024, proj_dim=1024)
    assert "Linformer sends 8.36 MB" in explorer.words
    assert "ring attention 4.18 MB, 1/2 as much; Ulysses 32.6 kB, 1/256 as much." in explorer.words
    assert "less than both above n = 262,144, but not here" in explorer.words


def test_where_the_curves_cross_the_words_turn():
    explorer = move(WireExplorer(), n=2048)
    assert "Ulysses 1.84 MB, just as much" in explorer.words
    assert "less than both above n = 2,048, but not here" in explorer.words
    explorer.n.value = 4096
    assert "less than both above n = 2,048, as here" in explorer.words


def test_the_words_are_true_at_the_ends_of_every_control():
    explorer = WireExplorer()
    for values in ENDS:
        move(explorer, **values)
        ours, theirs = explorer.sent["Linformer"], [explorer.sent[name] for name in explorer.above]
        assert ("as here" in explorer.words) == (ours < min(theirs))
        assert ("but not here" in explorer.words) == (ours >= min(theirs))
        assert ("columns of E = F" in explorer.words) == values["shared"]


def test_the_dots_lie_on_their_curves_at_the_chosen_n(drawn):
    explorer = move(WireExplorer(), n=2**12)  # 2 of 10 doublings
    (_, lines), _ = drawn["lines"][0]
    marker, *curves = lines[-4:]
    x = LEFT + 0.2 * (RIGHT - LEFT)
    assert marker[1] == INK
    assert marker[0] == [pytest.approx((x, BOTTOM)), pytest.approx((x, TOP))]
    for name, (points, colour, _), (dot, _) in zip(explorer.sent, curves, drawn["box"], strict=True):
        y = BOTTOM - math.log10(explorer.sent[name] / 1e3) / 8 * (BOTTOM - TOP)  # 1 kB … 100 GB
        (left, top, right, bottom), fill, _ = dot
        assert fill == colour == LOOKS[name][0]
        assert points[2] == pytest.approx((x, y))
        assert ((left + right) / 2, (top + bottom) / 2) == pytest.approx((x, y))
        assert (points[0][0], points[-1][0], len(points)) == (LEFT, RIGHT, 11)


def test_the_curves_end_where_the_longest_text_has_its_dots(drawn):
    WireExplorer()
    ends = [points[-1] for points, *_ in drawn["lines"][0][0][1][-3:]]
    move(WireExplorer(), n=2**20)
    dots = [((left + right) / 2, (top + bottom) / 2) for ((left, top, right, bottom), *_), _ in drawn["box"]]
    assert [pytest.approx(end) for end in ends] == dots


def test_names_stand_at_the_ends_of_their_curves(drawn):
    WireExplorer()
    (_, lines), _ = drawn["lines"][0]
    ends = {colour: points[-1][1] for points, colour, _ in lines[-3:]}
    written = {args[2]: args for args, _ in drawn["text"] if args[3] == 14}
    for name, (colour, *_) in LOOKS.items():
        _, y, *_, inked = written[name]
        assert inked == colour
        assert y == pytest.approx(ends[colour], abs=1)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ({}, {"16,384", "columns of E and F", "16.8 MB", "7 passes", "Ulysses needs 8 heads or more."}),
        ({"ranks": 2}, {"65,536", "67.1 MB", "268 MB", "1 pass", "Ulysses needs 2 heads or more."}),
        ({"shared": True}, {"columns of E = F", "8.39 MB", "918 kB", "4 all-to-alls", "1 all-reduce"}),
    ],
)
def test_the_rows_print_what_a_rank_holds_and_sends(drawn, values, rows):
    explorer = move(WireExplorer(), **values)
    printed = {args[2] for args, _ in drawn["text"]}
    assert rows | {in_bytes(sent) for sent in explorer.sent.values()} <= printed


def test_no_words_overlap_or_leave_the_card_at_the_ends_of_every_control(drawn):
    explorer = WireExplorer()
    for values in ENDS:
        move(explorer, **values)
        width, height = (side / DENSITY for side in explorer._image.size)
        taken = [args[0] for args, _ in drawn["box"]]  # the dots
        for args, named in drawn["text"]:
            left, top, right, bottom = place(*args[:4], **named)
            assert min(left, top) >= 0 and right <= width and bottom <= height
            for other in taken:
                apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
                assert apart, (args[2], values)
            taken.append((left, top, right, bottom))


def place(x, y, words, size, anchor="lm", bold=False):
    """The box that one line of words fills."""
    assert size >= 14, words
    width = text_width(words, size, bold)
    left = x - width * {"lm": 0, "mm": 0.5, "rm": 1}[anchor]
    return left, y - size / 2, left + width, y + size / 2


@pytest.mark.parametrize(
    ("value", "words"), [(512, "512 B"), (32768, "32.8 kB"), (1835008, "1.84 MB"), (17112760320, "17.1 GB")]
)
def test_bytes_have_three_digits_and_a_unit(value, words):
    assert in_bytes(value) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(2048, "2,048 times as much"), (2, "2 times as much"), (1, "just as much"), (0.25, "1/4 as much")],
)
def test_ratios_in_words(ratio, words):
    assert times(ratio) == words


def test_every_control_changes_its_own_picture_and_numbers_only():
    explorer, twin = WireExplorer(), WireExplorer()
    untouched = state(twin)
    moves = {"ranks": 16, "n": 4096, "proj_dim": 64, "d_model": 256, "shared": True}
    assert len(moves) == len(explorer.children[0].children)
    for name, value in moves.items():
        before = state(explorer)
        move(explorer, **{name: value})
        picture, words = state(explorer)
        assert picture != before[0], name
        assert words != before[1], name
    assert state(twin) == untouched


def test_a_move_takes_less_than_a_tenth_of_a_second(record_property):
    explorer, clock = WireExplorer(), []
    for name, value in {"ranks": 256, "n": 1024, "proj_dim": 64, "d_model": 4096, "shared": True}.items():
        start, busy = time.perf_counter(), time.process_time()
        move(explorer, **{name: value})
        assert time.process_time() - busy < 0.1  # of this process, whatever else the machine does
        clock.append(1e3 * (time.perf_counter() - start))
    record_property(
        "report", f"WireExplorer: {statistics.median(clock):.0f} ms a move (largest {max(clock):.0f})"
    )
