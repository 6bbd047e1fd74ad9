"""Which promises does an attention layer keep? Each is a few lines of Python that anybody can run again."""

from linformer_from_scratch.promises.checks import exponents as exponents
from linformer_from_scratch.promises.examination import assert_keeps as assert_keeps
from linformer_from_scratch.promises.examination import examine as examine
from linformer_from_scratch.promises.report import Report as Report
