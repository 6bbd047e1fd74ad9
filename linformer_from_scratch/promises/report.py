"""What an examination found: a line for each promise, as text and as JSON."""

from dataclasses import dataclass
from typing import NamedTuple

KEPT, BROKEN, NOT_APPLICABLE, FOUND = "kept", "BROKEN", "not applicable", "found"


class Verdict(NamedTuple):
    """How a promise came out: one of the four, in words how far or why, and the lines that show it again."""

    status: str
    words: str = ""
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.status}{' ' if self.words.startswith('by ') else ': '}{self.words}".rstrip(": ")


@dataclass(frozen=True)
class Report:
    """Which promises a layer keeps.

    Args:
        layer: what was examined, and how it was called.
        promises: name -> the promise. verdicts: name -> how it came out.
    """

    layer: str
    promises: dict[str, str]
    verdicts: dict[str, Verdict]

    @property
    def broken(self) -> list[str]:
        """Names of the promises that the layer breaks."""
        return [name for name, verdict in self.verdicts.items() if verdict.status == BROKEN]

    @property
    def kept(self) -> list[str]:
        """Names of the promises that it keeps."""
        return [name for name, verdict in self.verdicts.items() if verdict.status == KEPT]

    def json(self) -> dict:
        """All of it, for json.dumps."""
        said = {name: {"promise": self.promises[name]} | v._asdict() for name, v in self.verdicts.items()}
        return {"layer": self.layer, "broken": self.broken, "promises": said}

    def __str__(self) -> str:
        wide = max(map(len, self.promises.values()))
        rows = [self.layer]
        for name, verdict in self.verdicts.items():
            rows.append(f"{name:14} {self.promises[name]:{wide}}  {verdict}")
            rows += (f"    {line}" for line in verdict.lines)
        return "\n".join(rows)
