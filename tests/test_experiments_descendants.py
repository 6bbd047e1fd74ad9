"""Chapter 13's models: what a layer writes token by token is what it gives for the whole text."""

import pytest
import torch

from lab.descendants import D_MODEL, KINDS, READ, writing_step


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_what_is_read(kind):
    torch.manual_seed(0)
    layer, x, cache, outputs = KINDS[kind](96, READ).eval(), torch.randn(2, 96, D_MODEL), None, []
    step = writing_step(kind, layer)
    with torch.no_grad():
        for token in x.split(1, dim=1):
            output, cache = step(token, cache)
            outputs.append(output)
        torch.testing.assert_close(torch.cat(outputs, dim=1), layer(x), atol=1e-5, rtol=0)
