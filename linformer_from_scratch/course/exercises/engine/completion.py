"""A completion code: one line that names what has passed, for a grader to compare with the files beside it.

It needs no server and holds no learner's name. It is no signature: whoever reads this file can make one for any list.
"""

import re
from collections.abc import Collection
from hashlib import blake2b

SALT = b"a strip, not a square"
CODE = re.compile(r"linformer-passed:([\d.,]*):[0-9a-f]{8}")


def code_of(passed: Collection[str], order: Collection[str]) -> str:
    """The code of what has passed, in the course's order."""
    ids = ",".join(one for one in order if one in passed)
    return f"linformer-passed:{ids}:{blake2b(ids.encode(), key=SALT, digest_size=4).hexdigest()}"


def compared(text: str, passed: Collection[str], order: Collection[str]) -> list[str]:
    """What the last code in a text has to do with what passes, in a sentence; empty where there is none."""
    if not (codes := [*CODE.finditer(text)]):
        return []
    claimed = {*codes[-1][1].split(",")} - {""}
    lists = {"names, not passing here": claimed - set(passed), "lacks": set(passed) - claimed}
    said = [f"{what}: {', '.join(id for id in order if id in some)}" for what, some in lists.items() if some]
    whole = codes[-1][0] == code_of(claimed, order)
    return [f"completion code: {('; '.join(said) or 'names what passes') if whole else 'changed'}"]
