"""Draw the learning curves of chapter 08 from its recorded runs: make curves

Reads the recorded results, trains nothing, writes PNG files to build/curves.
"""

from pathlib import Path

from matplotlib.figure import Figure

from linformer_from_scratch.experiments.curves import curves_of, recorded
from linformer_from_scratch.plots import learning_curves

TARGET = Path(__file__).resolve().parents[1] / "build" / "curves"
TRANSFORMER = {"Transformer": ("size", {"attention": "full"})}
NOTHING = {"no attention": ("size", {"attention": "none"})}
SHARING = ("none", "headwise", "key-value")
LENGTHS = {128: "size", 512: "length"}
PICTURES = {
    "k": TRANSFORMER
    | NOTHING
    | {f"Linformer, k = {k}": ("size", {"proj_dim": k}) for k in (128, 64, 32, 16)},
    "sharing": TRANSFORMER | {f"sharing {word}": ("sharing", {"sharing": word}) for word in SHARING},
    "pooled": TRANSFORMER
    | NOTHING
    | {f"mean pooling, k = {k}": ("size", {"proj_dim": k, "projection": "mean"}) for k in (64, 32, 16)},
    "start": {"from windows": ("size", {}), "from random numbers": ("start", {"projection": "random"})},
    "length": {f"Linformer, n = {n}": (name, {"seq_len": n}) for n, name in LENGTHS.items()},
}


def picture(name: str) -> Figure:
    """One of the pictures."""
    runs = {label: recorded(experiment, **wanted) for label, (experiment, wanted) in PICTURES[name].items()}
    levels = next(iter(runs.values()))[0]["baselines"]
    drawn = {label: curves_of(rows) for label, rows in runs.items()}
    return learning_curves(drawn, "held-out loss, nats per masked token", f"Recorded runs: {name}", levels)


def main() -> None:
    """Write every picture."""
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        picture(name).savefig(TARGET / f"{name}.png")
        print(TARGET / f"{name}.png")


if __name__ == "__main__":
    main()
