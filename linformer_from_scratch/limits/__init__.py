"""What Linformer cannot do, each as an experiment (chapter 12).

recall: copying at a fixed k. sharpness: sharp attention. writing: generating text. capstone: Linformer fitted
into a pretrained encoder, at one length. adapting: the same at every length. bootstrap: whether one search is
better than another.
"""

from linformer_from_scratch.limits.recall import copy_error
from linformer_from_scratch.limits.sharpness import errors_by_temperature
from linformer_from_scratch.limits.writing import leak, next_token_loss, write_on, written_loss

__all__ = [
    "copy_error",
    "errors_by_temperature",
    "leak",
    "next_token_loss",
    "write_on",
    "written_loss",
]
