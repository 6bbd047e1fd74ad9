"""What is refused in one sentence."""

import re

import pytest


def refusing(*cases, by=lambda call: call(), pattern=True):
    """A test of calls, or of what `by` is given: each raises a ValueError that says its part, or pattern."""

    @pytest.mark.parametrize(("given", "said"), cases)
    def test(given, said):
        with pytest.raises(ValueError, match=said if pattern else re.escape(said)):
            by(given)

    return test
