"""Calls that are refused in one sentence."""

import pytest


def refusing(*cases):
    """A test of calls, each with what its ValueError says, as a pattern."""

    @pytest.mark.parametrize(("call", "said"), cases)
    def test(call, said):
        with pytest.raises(ValueError, match=said):
            call()

    return test
