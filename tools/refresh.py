"""Run notebooks from top to bottom and keep their outputs: python tools/refresh.py [01 02 …]

Without numbers it refreshes every chapter, evidence page and solution. A cell that raises stops it, and the
notebook stays as it was. The glossary, which is made of the chapters' sentences, is written anew.
"""

import base64
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from lectures import numbered
from nbclient import NotebookClient

from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.course import glossary

ROOT = Path(__file__).resolve().parents[1]
PICTURE = "picture-"  # a tag that begins so names the file in chapters/ that the README shows
FOLDERS = ("chapters", "chapters/evidence", "solutions")
LIMIT_S = 300  # seconds a cell may take


def refresh(path: Path) -> None:
    """Execute one notebook where it lies and write it back with its new outputs."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=LIMIT_S,
        resources={"metadata": {"path": str(path.parent)}},
        store_widget_state=False,  # pages and slides show the still pictures instead
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.validate(notebook)
    nbformat.write(notebook, path)
    for cell in notebook.cells:
        for tag in (tag for tag in cell.metadata.get("tags", []) if tag.startswith(PICTURE)):
            shown = ROOT / "chapters" / f"{tag.removeprefix(PICTURE)}.png"
            shown.write_bytes(base64.b64decode(cell.outputs[0].data["image/png"]))


def main() -> None:
    """Refresh the notebooks named on the command line."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINFORMER_PROGRESS"] = f"{folder}/progress.json"  # not the reader's own
        os.environ["IPYTHONDIR"] = folder  # nor what theirs runs at its start
        for path in numbered(paths, sys.argv[1:]):
            start = time.perf_counter()
            refresh(path)
            print(f"{path.relative_to(ROOT)}: {time.perf_counter() - start:.0f} s")
    atomic_write(glossary.PAGE, glossary.page(glossary.entries()))


if __name__ == "__main__":
    main()
