"""What to type: to measure, and to measure on a GPU that somebody has for an hour."""

COMMAND = "python -m linformer_from_scratch.benchmark"
GPU_FILE = "build/benchmark_gpu.json"  # in the course's folder
MINUTES = 8


def on_a_gpu(folder: str = "") -> str:
    """The command that measures on a GPU; the course lies in the folder."""
    return f"{COMMAND} --device cuda --minutes {MINUTES} --out {folder}{GPU_FILE} --resume"


def to_paste() -> str:
    """Three lines for a machine with a GPU and nothing else but Python; in a notebook, each after a `!`."""
    return "\n".join(
        [
            "git clone ADDRESS course          # where you have the course from; or copy its folder there",
            'pip install -e "course[test]"     # keeps the PyTorch that is there',
            on_a_gpu("course/"),
        ]
    )
