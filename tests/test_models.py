"""models.yml: what a card adds up to is what its model's makers have published, or the card says why not."""

import pytest

from linformer_from_scratch.course.models import cards


@pytest.mark.parametrize("card", cards().values(), ids=cards())
def test_a_card_adds_up_to_the_published_figure(card):
    ours, published = card.bytes_per_token(), card.published
    assert bool(published) != bool(card.unpublished)
    if "bytes" in published:
        assert ours == pytest.approx(published["bytes"], rel=0.001)
    if "smaller" in published:
        ratio = cards()[published["than"]].bytes_per_token() / ours
        assert round(ratio, 1) == published["smaller"]
    assert all(some.entries or some.window or some.state for some in card.layers)


def test_bytes_of_a_token_by_hand():
    """Slots of V4-Flash: 448 numbers of 8 bits, 64 of 16, 8 scales; index keys of V4.1: 4 bits, 4 scales."""
    v4, v41 = (cards()[f"DeepSeek-{name}-Flash"] for name in ("V4", "V4.1"))
    slot, index = 448 + 2 * 64 + 8, 128 // 2 + 128 // 32
    assert v4.bytes_per_token() == 21 / 4 * (slot + index) + 20 / 128 * slot
    assert v41.bytes_per_token() == (3 / 2 + 1) * (512 // 2 + 512 // 16 + index)
    assert v41.bytes_per_token(bits=16) == (3 / 2 + 1) * 2 * (512 + 128)
    assert cards()["GLM-5.3-Flash"].bytes_per_token() == 11 * (2 * 512 + (128 + 4) / 4)


def test_glm_is_as_much_smaller_as_its_makers_say_at_131072_tokens():
    """They count numbers of an average layer, states included: 78 layers of GLM-5.3 keep 576, 21 also 128."""
    states, choosing = cards()["GLM-5.3-Flash"].layers
    kept = choosing.count * (choosing.size + choosing.index / choosing.index_ratio)
    ours = (kept + states.count * states.state / 2**17) / (states.count + choosing.count)
    assert round((78 * 576 + 21 * 128) / 78 / ours, 1) == 4.4
