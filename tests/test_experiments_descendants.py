"""Chapter 13's models: what a layer writes token by token is what it gives for the whole text."""

import pytest
import torch

from lab.descendants import ALL_KINDS, D_MODEL, READ, attention_layers, writing_step


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_what_is_written_is_what_is_read(kind):
    torch.manual_seed(0)
    layers, x, caches, outputs = attention_layers(kind, 96, READ), torch.randn(2, 96, D_MODEL), None, []
    step = writing_step(kind, layers)
    with torch.no_grad():
        for token in x.split(1, dim=1):
            output, caches = step(token, caches)
            outputs.append(output)
        read = torch.nn.Sequential(*layers)(x)
    torch.testing.assert_close(torch.cat(outputs, dim=1), read, atol=1e-5, rtol=0)
