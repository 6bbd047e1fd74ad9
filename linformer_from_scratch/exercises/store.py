"""Progress, kept in one small local file; nothing leaves the machine.

The file is .progress.json in the folder of the notebook, or what the variable LINFORMER_PROGRESS names.
"""

import json
import os
from pathlib import Path


def load() -> dict[str, dict]:
    """Exercise id -> {"passed": bool, "hints": int}. A file that cannot be read is set aside with a word."""
    path = _path()
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if _is_record(record):
            return record
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        pass
    _set_aside(path)
    return {}


def note(exercise_id: str, **news: bool | int) -> None:
    """Remember news of one exercise. Where the folder cannot be written, say so and go on."""
    record = load()
    record[exercise_id] = {"passed": False, "hints": 0} | record.get(exercise_id, {}) | news
    path = _path()
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        new.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(new, path)  # all or nothing
    except OSError as error:
        print(f"progress is not kept: {path} cannot be written ({error.strerror})")


def _path() -> Path:
    return Path(os.environ.get("LINFORMER_PROGRESS", ".progress.json"))


def _is_record(record: object) -> bool:
    return isinstance(record, dict) and all(
        isinstance(entry, dict) and type(entry.get("passed")) is bool and type(entry.get("hints")) is int
        for entry in record.values()
    )


def _set_aside(path: Path) -> None:
    aside = path.with_name(f"{path.name}.damaged")
    try:
        os.replace(path, aside)
        print(f"{path.name} could not be read; it is kept as {aside.name}, and progress begins anew")
    except OSError as error:
        print(f"{path.name} could not be read ({error.strerror}); progress begins anew")
