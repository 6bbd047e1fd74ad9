"""start_here.py: the doctor says what is missing, and a question finds its answer through few slots."""

from collections import namedtuple

import torch

from linformer_from_scratch.course import front_page, start_here
from linformer_from_scratch.pretrained.tokens import tokenize


def lines(capsys):
    start_here.doctor()
    return capsys.readouterr().out.splitlines()


def test_one_line_is_enough_where_all_is_well(capsys, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "97.1.0+cu130")  # with its build, which metadata leaves out
    (line,) = lines(capsys)
    assert "torch 97.1.0+cu130" in line and f"{torch.get_num_threads()} threads" in line


def test_a_missing_model_is_named_with_its_remedy(capsys, monkeypatch):
    monkeypatch.setattr(start_here, "model_folder", lambda: None)
    assert lines(capsys)[1:] == [start_here.REMEDY]


def test_a_full_disk_is_said(capsys, monkeypatch):
    usage = namedtuple("usage", "free")
    for free, low in ((0.3e9, 1), (2e9, 0)):
        monkeypatch.setattr(start_here.shutil, "disk_usage", lambda path, free=free: usage(free))
        assert sum(line.startswith("low") for line in lines(capsys)) == low


def test_a_question_is_answered_by_exact_attention_and_through_a_sixteenth(capsys):
    text = front_page.texts()[0].text
    start_here.ask("Why is it so noisy?", text)
    exact, *answers, slots = capsys.readouterr().out.splitlines()[:5]
    n = len(tokenize(text, None))
    assert f" {n} tokens" in exact and f" {n // 16} summaries" in slots
    assert answers[0].startswith("  1. A loud noise")
