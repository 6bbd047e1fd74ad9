"""capstone.py: passages, search, and a fit that makes one encoder say what another says."""

import pytest
import torch
from torch.testing import assert_close

from lab import capstone as declared
from linformer_from_scratch.course import recorded
from linformer_from_scratch.data import documents
from linformer_from_scratch.pretrained import capstone, tokenize
from linformer_from_scratch.pretrained import sentence_encoder as se
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training.recipes import projection_weights


def test_passages_are_the_text_in_order_between_cls_and_sep():
    words = " ".join(f"word {i}" for i in range(20))
    texts = {"a": words, "b": "too short", "c": "one two three four five " * 3}
    ids, pairs = capstone.passages(texts, n=10)
    whole = {title: tokenize(text)[1:-1] for title, text in texts.items()}
    assert ids.size(1) == 10
    assert (ids[:, 0] == tokenize("")[0]).all() and (ids[:, -1] == tokenize("")[1]).all()
    counts = [len(tokens) // 8 for tokens in whole.values()]
    assert counts[1] == 0 and len(ids) == sum(counts)
    assert torch.equal(ids[: counts[0], 1:-1].flatten(), whole["a"][: 8 * counts[0]])
    assert torch.equal(ids[counts[0] :, 1:-1].flatten(), whole["c"][: 8 * counts[2]])
    first = [[i, i + 1] for i in range(counts[0] - 1)]
    assert pairs.tolist() == first + [[counts[0] + i, counts[0] + i + 1] for i in range(counts[2] - 1)]
    with pytest.raises(ValueError, match="no document has a passage of n=100 tokens"):
        capstone.passages({"b": "too short"}, n=100)


def test_passages_leave_out_no_token_of_a_script_whose_letters_are_several():
    text = "강한 손님들은 한국말을 잘한다. " * 12
    tokens = tokenize(text, max_tokens=None)[1:-1]
    ids, _ = capstone.passages({"a": text}, n=12)
    assert len(tokens) > 2 * len(text)
    assert torch.equal(ids[:, 1:-1].flatten(), tokens[: len(tokens) // 10 * 10])


def test_a_passage_without_room_for_a_token_is_refused():
    with pytest.raises(ValueError, match=r"n is 2, expected at least 3: \[CLS\], a token, \[SEP\]"):
        capstone.passages({"a": "one two three"}, 2)


def test_ranks_count_the_closer_passages_and_none_finds_itself():
    angles = torch.tensor([0.0, 0.5, 0.1, 3.0])
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    pairs = torch.tensor([[0, 2], [0, 1], [0, 3], [1, 0], [3, 0]])
    assert capstone.following_ranks(vectors, pairs).tolist() == [1, 2, 3, 2, 3]
    assert capstone.mean_cosine(vectors, vectors) == pytest.approx(1)
    assert capstone.mean_cosine(vectors[:1], vectors[1:2]) == pytest.approx(torch.tensor(0.5).cos().item())


@pytest.fixture(scope="module")
def teacher():
    return se.full_encoder()


@pytest.fixture(scope="module")
def texts():
    return capstone.passages(documents(), n=32)


def test_the_teacher_keeps_everything_of_itself(teacher, texts):
    ids, pairs = texts[0][:12], torch.tensor([[0, 1], [1, 2]])
    expected = capstone.embed_all(teacher, ids, batch=5)
    kept = capstone.retention(teacher, ids, pairs, expected)
    ranks = capstone.following_ranks(expected, pairs)
    assert kept["cosine"] == pytest.approx(1) and kept["ranks"] == ranks.tolist()
    assert kept["reciprocal"] == pytest.approx((1 / ranks).mean().item())
    assert kept["first"] == (ranks == 1).float().mean()


def test_chunks_are_encoded_each_by_itself_and_averaged(teacher, texts):
    ids = texts[0][:3]  # [CLS], 30 tokens, [SEP]
    halves = [ids[:, 1:16], ids[:, 16:-1]]
    vectors = [teacher.embed(torch.cat([ids[:, :1], half, ids[:, -1:]], dim=1)) for half in halves]
    expected = torch.nn.functional.normalize(sum(vectors), dim=-1)
    assert_close(capstone.embed_all(capstone.ChunkEncoder(teacher, 16), ids, batch=2), expected)
    whole = capstone.ChunkEncoder(teacher, 30)
    assert_close(capstone.embed_all(whole, ids), capstone.embed_all(teacher, ids))


def test_a_search_for_nothing_is_refused(teacher, texts):
    ids, pairs = capstone.passages({"a": "one two three"}, n=4)
    assert pairs.shape == (0, 2)
    with pytest.raises(ValueError, match="0 pairs of passages, expected at least 1"):
        capstone.retention(teacher, ids, pairs, capstone.embed_all(teacher, ids))


def test_the_loss_is_the_mean_over_blocks_of_relative_squares(teacher, texts):
    loss, ids = capstone.DistillationLoss(teacher), texts[0][:2]
    assert loss(teacher, ids).item() == 0
    other = se.linformer_encoder(lambda: start_at_windows(LearnedProjection(32, 8)))
    blocks = zip(other.hidden(ids), teacher.hidden(ids), strict=True)
    expected = [(x - y).norm() ** 2 / y.norm() ** 2 for x, y in blocks]
    assert_close(loss(other, ids), torch.stack(expected).mean())


def test_fitting_changes_what_it_may_and_brings_the_encoder_nearer(teacher, texts):
    torch.manual_seed(0)
    model = se.linformer_encoder(lambda: start_at_windows(LearnedProjection(32, 8)))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ids = texts[0][:17]
    expected = capstone.embed_all(teacher, ids)
    start = capstone.mean_cosine(capstone.embed_all(model, ids), expected)
    losses = capstone.fit(model, projection_weights(model), teacher, ids, updates=11, rate=1e-3)
    assert len(losses) == 11 and sum(losses[-3:]) < sum(losses[:3])
    assert capstone.mean_cosine(capstone.embed_all(model, ids), expected) > start + 0.01
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {name for name in before if ".E." in name or ".F." in name} and len(changed) == 12


def test_in_recorded_rows_what_is_kept_is_between_nothing_and_everything():
    rows = recorded.read_rows("12_capstone")
    assert (rows[0]["way"], rows[0]["k"]) == ("exact", 512)
    for row in rows:
        for kept in (row["docstrings"], row["reference"]):
            assert 0 <= kept["first"] <= kept["reciprocal"] <= 1 and 0 < kept["cosine"] <= 1
    assert rows[0]["docstrings"]["cosine"] == rows[0]["reference"]["cosine"] == 1


def test_the_recorded_costs_are_of_the_encoders_that_are_declared():
    (row,) = recorded.read_rows("12_costs")
    costs = row["costs"]
    assert list(costs) == list(declared.compared())
    assert min(cost["seconds"] for cost in costs.values()) > 0
    maps = row["batch"] * 12 * row["n"] ** 2 * 4  # bytes of one layer's maps, 12 heads in float32
    assert costs[declared.STORED]["bytes"] > maps > costs[declared.FUSED]["bytes"] > 0


def test_a_model_that_embeds_stays_in_its_mode():
    class Embeds(torch.nn.Linear):
        def embed(self, ids):
            assert not self.training
            return self(ids)

    model = Embeds(3, 2)
    for mode in (True, False):
        assert capstone.embed_all(model.train(mode), torch.ones(11, 3)).shape == (11, 2)
        assert model.training == mode
