"""Widgets: controls → arrays → picture, one a file."""

from linformer_from_scratch.widgets.attention_explorer import AttentionExplorer
from linformer_from_scratch.widgets.head_gallery import HeadGallery

__all__ = ["AttentionExplorer", "HeadGallery"]
