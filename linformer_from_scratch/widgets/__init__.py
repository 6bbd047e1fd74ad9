"""Widgets: controls → arrays → picture."""

from linformer_from_scratch.course.widgets import *  # noqa: F403
from linformer_from_scratch.course.widgets import __all__ as __all__
