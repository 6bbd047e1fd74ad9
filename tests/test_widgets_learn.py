"""E and F that learn in a page: the same updates as PyTorch's, and a button that runs and ends them."""

import numpy as np
import pytest
import torch
from jupyter_lab import alive, open_page
from live import wait_until
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import ProjectionExplorer, projection_explorer
from linformer_from_scratch.course.widgets.live import source
from linformer_from_scratch.course.widgets.projection_explorer import GAUSSIAN, MEAN, real_map, stored_head

pytestmark = pytest.mark.browser

UPDATES, RATE = 50, 0.003
LEARN = """([head, E, F, updates, rate]) => {
    const pupil = learner(head, E, F, rate), errors = Array.from({ length: updates }, () => pupil.step());
    return { errors, projections: pupil.projections.map((all) => [...all]) };
}"""


def learned_by_pytorch(name, kind, k):
    """Errors before each update; then E and F."""
    head, wanted = stored_head(name), real_map(name) @ stored_head(name).v
    E, F = (some.clone().requires_grad_() for some in projection_explorer.projections(kind, name, k))
    optimizer, errors = torch.optim.Adam([E, F], lr=RATE), []
    for _ in range(UPDATES):
        optimizer.zero_grad()
        P_bar = torch.softmax(head.q @ (E @ head.k).T / head.q.size(1) ** 0.5, dim=-1)
        loss = (P_bar @ (F @ head.v) - wanted).square().sum() / wanted.square().sum()
        loss.backward()
        optimizer.step()
        errors.append(loss.item() ** 0.5)
    return errors, E.detach(), F.detach()


@pytest.mark.parametrize(("name", "kind", "k"), [("5.6", MEAN, 32), ("1.3", GAUSSIAN, 4), ("4.2", MEAN, 2)])
def test_fifty_updates_are_those_of_pytorch(browser, name, kind, k):
    head = stored_head(name)
    texts = {"q": head.q, "keys": head.k, "v": head.v, "wanted": real_map(name) @ head.v}
    given = {part: numbers.flatten().tolist() for part, numbers in texts.items()} | {"d": head.q.size(1)}
    with open_page(browser) as page:
        page.add_script_tag(content=source("maths") + source("learn"))
        both = [some.flatten().tolist() for some in projection_explorer.projections(kind, name, k)]
        result = page.evaluate(LEARN, [given, *both, UPDATES, RATE])
    errors, *expected = learned_by_pytorch(name, kind, k)
    assert np.allclose(result["errors"], errors, atol=1e-4)
    for seen, wanted in zip(result["projections"], expected, strict=True):
        assert_close(torch.tensor(seen, dtype=torch.float64).view_as(wanted), wanted, atol=1e-4, rtol=0)
    assert errors[-1] < 0.9 * errors[0]


def test_a_press_of_learn_lowers_the_error_until_the_next_press(browser, tmp_path):
    explorer = ProjectionExplorer(kind=MEAN)
    with alive(browser, tmp_path, explorer) as (live,):
        button = live.root.get_by_role("button", name="Learn")

        def error():
            return live.numbers()["error"].item()

        button.click()
        wait_until(lambda: error() < 0.5 * explorer.error, "a lower error")
        live.controls()["Slots k"].press("ArrowRight")
        wait_until(lambda: "k = 32" in live.words() and "updates" in live.words(), "another k")
        live.root.get_by_role("button", name="Stop", exact=True).click()
        live.after(lambda: None)
        resting = error()
        live.after(lambda: live.page.wait_for_timeout(200))
        assert error() == resting < explorer.error
        live.root.get_by_role("button", name="Reset").click()
        live.after(lambda: None)
        assert live.differences(explorer) == []


@pytest.mark.parametrize("name", projection_explorer.HEADS)
def test_windows_are_a_better_start_than_chance(name):
    ends = {kind: learned_by_pytorch(name, kind, 16)[0][-1] for kind in (MEAN, GAUSSIAN)}
    assert ends[MEAN] < ends[GAUSSIAN]
