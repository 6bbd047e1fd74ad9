"""A limit of time: whether there is enough left for another job, by what those before it took."""

import time

TURNS = 3  # of each variant, beside its rounds: set up, weighed, warmed up


class Budget:
    """Minutes for all jobs together. None is no limit.

    The next of a kind takes at most as long as the one before it to be built, and (n / n before)² as long to
    compute; one of a new kind is begun as long as there is time.
    """

    def __init__(self, minutes: float | None):
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self._before: dict[tuple, tuple[int, float, float]] = {}

    def allows(self, what: dict) -> bool:
        """Whether a job should be done in time."""
        if self.end is None:
            return True
        n, building, computing = self._before.get(_kind(what), (0, 0.0, 0.0))
        growth = (what["n"] / n) ** 2 if n else 0.0
        return building + growth * computing < self.end - time.monotonic()

    def learn(self, row: dict, seconds: float | None = None) -> None:
        """What a job took; None where only its row is known."""
        samples = row.get("seconds", {}).values()
        computing = sum(sum(found) * (len(found) + TURNS) / len(found) for found in samples if found)
        building = 0.0 if seconds is None else max(0.0, seconds - computing)
        self._before[_kind(row)] = row.get("n", 0), building, computing


def _kind(what: dict) -> tuple:
    return tuple(what.get(field) for field in ("part", "kind", "pass", "layer"))
