"""Which recorded results come from the code as it stands: python tools/recorded.py

A file names the code that measured it: the tool, and all that it imports of the package. Where that has
changed, measure again (its `command` says how), or, if no number can have changed, say why:

python tools/recorded.py accept "renamed an argument"
"""

import sys

from linformer_from_scratch.course.results import RESULTS, accept, outdated, read


def main() -> None:
    """List the files whose code has changed, or let their rows stand."""
    words = sys.argv[1:]
    if words and (words[0] != "accept" or len(words) != 2):
        sys.exit(f'got {" ".join(words)!r}, expected nothing, or: accept "why no number changes"')
    for path in sorted(RESULTS.glob("*.json")):
        found = accept(path, words[1]) if words else outdated(read(path))
        state = "stands, though changed" if words else "changed"
        print(f"{path.name}: {f'{state} since: ' + ', '.join(found) if found else 'current'}")


if __name__ == "__main__":
    main()
