"""The encoder that a page runs: two graphs, one file of weights, and the vectors and maps of ours."""

import subprocess
import sys
from pathlib import Path

import onnx
import onnxruntime
import pytest
import torch

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.data import documents
from linformer_from_scratch.pretrained.encoding import encode
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.network import pool
from linformer_from_scratch.pretrained.sentence_encoder import full_encoder
from linformer_from_scratch.pretrained.tokens import tokenize
from linformer_from_scratch.pretrained.windows import windows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
LENGTHS = 8, 24, 60, 128, 250, 500
GRAPHS = "exact.onnx", "slots.onnx"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    subprocess.run([sys.executable, ROOT / "tools/page_model.py", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def run(folder):
    sessions = {name: onnxruntime.InferenceSession(folder / name) for name in GRAPHS}

    def run(name, **inputs):
        given = {key: tensor.numpy() for key, tensor in inputs.items()}
        return [torch.from_numpy(output) for output in sessions[name].run(None, given)]

    return run


def texts():
    """Ids (1, n) of the reference's first documents, each cut to one of the lengths."""
    return [tokenize(text, n)[None] for n, text in zip(LENGTHS, documents().values(), strict=False)]


def vector(encoder, ids):
    with torch.no_grad():
        return encoder.eval().embed(ids)


def test_the_weights_are_stored_once(folder):
    assert {file.name for file in folder.iterdir()} == {*GRAPHS, "weights.bin"}
    for name in GRAPHS:
        graph = onnx.load(folder / name, load_external_data=False).graph
        entries = [entry for tensor in graph.initializer for entry in tensor.external_data]
        assert {entry.value for entry in entries if entry.key == "location"} == {"weights.bin"}
        assert (folder / name).stat().st_size < 0.5e6


def test_all_of_it_is_at_most_40_megabytes(folder):
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 40e6


def test_its_vectors_are_those_of_the_encoder(run, record_property):
    encoder, cosines = full_encoder(), []
    for ids in texts():
        got, hidden, *_ = run("exact.onnx", ids=ids)
        torch.testing.assert_close(pool(hidden), got)
        assert got.shape == (1, 384) and abs(got.norm() - 1) < 1e-5
        cosines.append(float((got * vector(encoder, ids)).sum()))
    assert min(cosines) >= 0.99
    record_property("report", f"page's model: cosine to the exact vectors at least {min(cosines):.4f}")


@pytest.mark.parametrize("proj_dim", [16, 64])  # at 64, short texts have empty slots
def test_with_windows_it_is_the_window_encoder(run, proj_dim):
    encoder = window_encoder(proj_dim)
    for ids in texts():
        E = windows(torch.tensor([ids.size(1)]), proj_dim, ids.size(1))[0]
        got, hidden, q, k, v = run("slots.onnx", ids=ids, E=E)
        assert q.shape == (6, 12, ids.size(1), 32) and k.shape == v.shape == (6, 12, proj_dim, 32)
        torch.testing.assert_close(pool(hidden), got)
        assert float((got * vector(encoder, ids)).sum()) >= 0.99


def test_with_a_slot_for_each_token_both_graphs_agree(run):
    for ids in texts():
        slots = run("slots.onnx", ids=ids, E=torch.eye(ids.size(1)))[0]
        assert float((slots * run("exact.onnx", ids=ids)[0]).sum()) >= 0.999


def test_its_queries_and_keys_give_the_maps(run):
    for ids in texts():
        n, (*_, q, k, v) = ids.size(1), run("exact.onnx", ids=ids)
        assert q.shape == k.shape == v.shape == (6, 12, n, 32)
        assert (attention_weights(q, k) - encode(ids[0]).weights).abs().sum(dim=-1).mean() / 2 < 0.1


@pytest.mark.parametrize("n", [2, 512])
def test_it_reads_the_shortest_and_the_longest_text(run, n):
    ids = torch.arange(1000, 1000 + n)[None]
    for got in (run("exact.onnx", ids=ids)[0], run("slots.onnx", ids=ids, E=torch.full((2, n), 1 / n))[0]):
        assert abs(got.norm() - 1) < 1e-5
