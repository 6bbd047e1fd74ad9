"""adapting.py: pieces of text of every length, and a fit by low-rank updates."""

from collections import Counter

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.data import documents
from linformer_from_scratch.pretrained import adapting, capstone, sentence_encoder, tokenize
from linformer_from_scratch.pretrained.adapting import Crops, VectorLoss
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.training import Config


def test_pieces_are_from_the_documents_between_cls_and_sep():
    texts = [" ".join(f"{letter}{i}" for i in range(60)) for letter in "ab"] + ["too short"]
    crops = Crops(texts, shortest=5, longest=40)
    bodies = [tokenize(text)[1:-1].tolist() for text in texts]
    lengths, starts = Counter(), set()
    for step in range(60):
        (ids,) = crops(step)
        lengths[ids.size(1)] += 1
        assert len(ids) == 2048 // ids.size(1)
        assert (ids[:, 0] == 101).all() and (ids[:, -1] == 102).all()
        starts |= {tuple(row) for row in ids[:, 1:4].tolist()}
        for row in ids[:3, 1:-1].tolist():
            assert any(row == body[i : i + len(row)] for body in bodies for i in range(len(body)))
    assert min(lengths) < 12 and max(lengths) == 40 and lengths[40] >= 10  # three tenths are whole
    assert len(starts) > 50  # anywhere
    assert torch.equal(crops(7)[0], crops(7)[0]) and not torch.equal(crops(0)[0][0, :5], crops(1)[0][0, :5])
    with pytest.raises(ValueError, match="no document has 512 tokens, the longest has"):
        Crops(["too short"], 5)


@pytest.fixture(scope="module")
def teacher():
    return sentence_encoder.full_encoder()


def test_the_loss_asks_for_blocks_and_for_vectors(teacher):
    ids, _ = capstone.passages(documents(), n=24)
    model, ids = window_encoder(6), ids[:3]
    with torch.no_grad():
        assert VectorLoss(teacher)(teacher, ids).item() == pytest.approx(0, abs=1e-6)
        cosine = (model.embed(ids) * teacher.embed(ids)).sum(dim=1).mean()
        blocks = capstone.DistillationLoss(teacher)(model, ids)
        assert_close(VectorLoss(teacher)(model, ids), blocks + 1 - cosine)
        x, y = (torch.stack([one.hidden(ids)[i] for i in (1, 5)]) for one in (model, teacher))
        some = ((x - y).square().sum((1, 2, 3)) / y.square().sum((1, 2, 3))).mean()
        assert_close(VectorLoss(teacher, blocks=(1, 5))(model, ids), some + 1 - cosine)


@pytest.mark.slow
def test_updates_of_a_rank_bring_an_encoder_nearer_and_a_run_goes_on(teacher, tmp_path):
    ids, _ = capstone.passages(documents(), n=24)
    expected = capstone.embed_all(teacher, ids[:40])
    crops = Crops(documents().values(), 24, 24)
    config = Config(steps=6, learning_rate=2e-3, warmup=1, weight_decay=0.0, evaluate_every=3)

    start = capstone.mean_cosine(capstone.embed_all(window_encoder(6), ids[:40]), expected)
    model, before = window_encoder(6), torch.get_rng_state()
    losses = adapting.adapt(model, VectorLoss(teacher), crops, 4, config, tmp_path)
    assert torch.equal(torch.get_rng_state(), before)  # the caller's
    assert len(losses) == 6
    assert capstone.mean_cosine(capstone.embed_all(model, ids[:40]), expected) > start + 0.01
    again = window_encoder(6)
    assert adapting.adapt(again, VectorLoss(teacher), None, 4, config, tmp_path) == losses  # nothing is left
    assert_close(again.embed(ids[:2]), model.embed(ids[:2]))
