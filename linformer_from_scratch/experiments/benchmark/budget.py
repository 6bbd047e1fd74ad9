"""A limit of time: is enough left for another job, judged by what the earlier ones took?"""

import time

TURNS = 3  # of each variant, beside its rounds: set up, weighed, warmed up


class Budget:
    """Minutes for all jobs together. None is no limit.

    A job is expected to take as long to build as the last one of its kind, and (n / its n)² as long to
    compute. The first of a kind begins if there is any time left.
    """

    def __init__(self, minutes: float | None):
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self._before: dict[tuple, tuple[int, float, float]] = {}

    def allows(self, what: dict) -> bool:
        """Whether a job should finish in time."""
        if self.end is None:
            return True
        n, building, computing = self._before.get(_kind(what), (0, 0.0, 0.0))
        growth = (what["n"] / n) ** 2 if n else 0.0
        return building + growth * computing < self.end - time.monotonic()

    def learn(self, row: dict, seconds: float | None = None) -> None:
        """Remember what a job took; None where only its row is known."""
        samples = row.get("seconds", {}).values()
        computing = sum(sum(found) * (len(found) + TURNS) / len(found) for found in samples if found)
        building = 0.0 if seconds is None else max(0.0, seconds - computing)
        self._before[_kind(row)] = row.get("n", 0), building, computing


def _kind(what: dict) -> tuple:
    return tuple(what.get(field) for field in ("part", "kind", "pass", "layer"))
