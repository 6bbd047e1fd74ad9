"""windows.py: an E for every length, and the attention that reads through it."""

import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.testing import assert_close

from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.windows import WindowAttention, windows

SAME = {"atol": 1e-6, "rtol": 1e-5}


def test_windows_by_hand():
    (E,) = windows(torch.tensor([8]), proj_dim=5, n=8)
    thirds = [[0, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 0]]
    expected = [[1, 0, 0, 0, 0, 0, 0, 0], *thirds, [0, 0, 0, 0, 0, 0, 0, 1]]
    assert_close(E, torch.tensor(expected) / torch.tensor([[1], [2], [2], [2], [1]]))


@pytest.mark.parametrize("length, proj_dim", [(129, 128), (200, 128), (512, 128), (17, 3), (9, 8), (512, 5)])
def test_every_token_is_in_one_window_and_windows_are_nearly_equal(length, proj_dim):
    (E,) = windows(torch.tensor([length]), proj_dim, n=length + 3)
    members = E > 0
    assert not members[:, length:].any() and (members[:, :length].sum(dim=0) == 1).all()
    assert_close(E.sum(dim=1), torch.ones(proj_dim))
    widths = members.sum(dim=1)
    assert widths[0] == widths[-1] == 1 and members[0, 0] and members[-1, length - 1]
    assert widths[1:-1].max() - widths[1:-1].min() <= 1
    firsts = members.int().argmax(dim=1)
    assert (firsts.diff() > 0).all()  # in the order of the text


def test_a_text_with_a_slot_for_each_token_has_them_all():
    E = windows(torch.tensor([5, 3, 1]), proj_dim=5, n=6)
    assert_close(E[0, :, :5], torch.eye(5))
    assert_close(E[1], torch.eye(5, 6).index_fill(0, torch.tensor([3, 4]), 0.0))
    assert E[2].sum() == E[2, 0, 0] == 1


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return WindowAttention(12, 3, proj_dim=5).double()


def test_it_is_linformers_attention_with_that_e(layer):
    x = torch.randn(2, 9, 12).double()
    E = windows(torch.tensor([9]), 5, 9)[0].double()
    made = (part(x).unflatten(-1, (3, 4)) for part in (layer.query, layer.key, layer.value))
    q, k, v = (part.transpose(1, 2) for part in made)
    heads = linformer_attention(q, k, v, E, E)  # the paper's order: E (X W)
    assert_close(layer(x), layer.output(heads.transpose(1, 2).flatten(2)))


def test_short_texts_get_exact_attention(layer):
    exact = MultiHeadAttention(12, 3).double()
    exact.load_state_dict(layer.state_dict())
    for n in (1, 2, 3, 5):
        x = torch.randn(2, n, 12).double()
        assert_close(layer(x), exact(x))
    assert (layer(torch.randn(1, 6, 12).double()) - exact(torch.randn(1, 6, 12).double())).abs().max() > 1e-3


def test_a_text_does_not_notice_what_it_is_padded_with_or_batched_with(layer):
    lengths = [9, 4, 1, 7]
    x = torch.randn(4, 11, 12).double()
    mask = torch.arange(11) < torch.tensor(lengths)[:, None]
    x[~mask] = torch.nan
    found = layer(x, mask)
    for i, n in enumerate(lengths):
        assert_close(found[i, :n], layer(x[i : i + 1, :n])[0])


def test_padding_before_a_text_is_refused(layer):
    mask = torch.tensor([[True, True, True], [False, True, True]])
    with pytest.raises(ValueError, match=r"^padding stands before a real token, expected every"):
        layer(torch.randn(2, 3, 12).double(), mask)


def test_too_few_slots_are_refused():
    with pytest.raises(ValueError, match="proj_dim is 2, expected an integer of at least 3"):
        WindowAttention(12, 3, proj_dim=2)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_texts_alone_and_in_a_batch_have_the_same_gradients(layer):
    """torch.func, which lets nobody look at a mask: what holds for one text is computed for all at once."""
    x, mask = torch.randn(3, 9, 12).double(), torch.arange(9) < torch.tensor([9, 4, 7])[:, None]
    weights = dict(layer.named_parameters())

    def size(weights, x, mask):
        return functional_call(layer, weights, (x[None], mask[None])).square().sum()

    together = vmap(grad(size), in_dims=(None, 0, 0))(weights, x, mask)
    for i in range(3):
        assert_close({name: g[i] for name, g in together.items()}, grad(size)(weights, x[i], mask[i]))
