"""Answers to check(…), hint(…) and the like: in a notebook each is shown once, wherever in a cell it was asked for.

Jupyter shows the last value of a cell. Whatever else was asked for in it is shown when the cell ends, or before
the next one that is shown, so that the order stays. Outside of notebooks an answer is a value like any other.
"""

import sys
from typing import TypeVar

T = TypeVar("T")
_unseen: list[object] = []


class Answer:
    """Base of answers that read as text and as HTML."""

    def as_text(self) -> str:
        """What print shows."""
        raise NotImplementedError

    def as_html(self) -> str:
        """What a notebook shows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        note_shown(self)
        return self.as_text()

    def _repr_html_(self) -> str:
        note_shown(self)
        return self.as_html()


def to_be_seen(answer: T) -> T:
    """The answer itself; a notebook shows it when the cell ends, unless it has been shown by then."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell:
        shell.events.register("post_run_cell", show_unseen)  # once, however often it is called
        _unseen.append(answer)
    return answer


def note_shown(answer: object) -> None:
    """Take note that an answer is being shown. What was asked for before it comes first."""
    if any(other is answer for other in _unseen):
        while (first := _unseen.pop(0)) is not answer:
            show(first)


def show_unseen(*cell: object) -> None:
    """Show all that has not been shown."""
    while _unseen:
        show(_unseen.pop(0))


def show(answer: object) -> None:
    """Show an answer below the cell that runs."""
    from IPython.display import display  # there is none without IPython

    display(answer)
