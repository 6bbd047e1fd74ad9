"""What Linformer cannot do, each as an experiment (chapter 12).

recall: recall and copying at a fixed k, from recorded runs. sharpness: sharp attention. writing: texts yet to
be written. length: shorter texts. capstone: Linformer fitted into a pretrained encoder. bootstrap: whether
one search is better than another. decision: which attention for which case, and what says so.
"""

from linformer_from_scratch.limits.recall import copy_error
from linformer_from_scratch.limits.sharpness import errors_by_temperature
from linformer_from_scratch.limits.writing import leak, next_token_loss, written_loss

__all__ = [
    "copy_error",
    "errors_by_temperature",
    "leak",
    "next_token_loss",
    "written_loss",
]
