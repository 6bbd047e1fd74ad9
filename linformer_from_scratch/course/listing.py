"""Code of the course, shown in a notebook as it stands in the package."""

import inspect
import textwrap
from collections.abc import Callable

LONGEST = 40  # lines: what fits one screen


class Listing:
    """Python source that a notebook shows in colours, and a terminal as it is."""

    def __init__(self, code: str):
        self.code = code

    def __repr__(self) -> str:
        return self.code

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.code}\n```"


def listing(*things: type | Callable) -> Listing:
    """The source of functions and classes, one below the other.

    Raises: ValueError if it has more lines than fit one screen.
    """
    code = "\n\n\n".join(textwrap.dedent(inspect.getsource(thing)).rstrip() for thing in things)
    lines = code.count("\n") + 1
    if lines > LONGEST:
        raise ValueError(
            f"got {lines} lines of code, expected at most {LONGEST}: what is shown whole fits one screen"
        )
    return Listing(code)
