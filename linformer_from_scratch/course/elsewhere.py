"""A chapter away from JupyterLab: what Google Colab and Kaggle need so that its live pictures are seen."""

import os
import sys
from importlib import import_module
from typing import Any

from IPython import get_ipython

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
STILL = "Kaggle's page cannot load the live pictures of this chapter, so they stand still here."


def prepare() -> None:
    """Do what this notebook's page needs for the live pictures; on one's own machine that is nothing.

    Colab's page loads the widgets of other packages once it is told to. Kaggle's page has only those that it
    was built with, so there a live picture is shown as its still, and a line says so.
    """
    if "KAGGLE_KERNEL_RUN_TYPE" in os.environ and (shell := get_ipython()) is not None:
        formatter = shell.display_formatter.mimebundle_formatter
        formatter.for_type_by_name("linformer_from_scratch.course.widgets.live", "LiveWidget", without_view)
        print(STILL)
    elif "google.colab" in sys.modules:
        import_module("google.colab.output").enable_custom_widget_manager()


def without_view(widget: Any) -> tuple[dict, dict]:
    """What a widget shows, and its metadata, without the part that the page must load."""
    data, metadata = widget._repr_mimebundle_()
    return {kind: value for kind, value in data.items() if kind != WIDGET_VIEW}, metadata
