"""What Linformer cannot do, each as an experiment (chapter 12).

recall: copying at a fixed k. sharpness: sharp attention. writing: generating text. Linformer in a pretrained
encoder is in `pretrained`.
"""

from linformer_from_scratch.limits.recall import copy_error as copy_error
from linformer_from_scratch.limits.sharpness import errors_by_temperature as errors_by_temperature
from linformer_from_scratch.limits.writing import leak as leak
from linformer_from_scratch.limits.writing import next_token_loss as next_token_loss
from linformer_from_scratch.limits.writing import write_on as write_on
from linformer_from_scratch.limits.writing import written_loss as written_loss
