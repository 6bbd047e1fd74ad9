"""The course's YAML files: claims, quizzes, advice, the front page."""

from pathlib import Path
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # where it was built with C, ten times as fast


def read_yaml(path: Path) -> Any:
    """What such a file holds."""
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)
