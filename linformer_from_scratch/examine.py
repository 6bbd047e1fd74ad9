"""The command `python -m linformer_from_scratch.examine`; imported, this is the function `examine`."""

import argparse
import inspect
import json
import sys
from importlib import import_module

from torch import nn

from linformer_from_scratch.promises import examine

LOOSE = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def main() -> int:
    """Print a report: 0 if no promise is broken, 1 if one is, 2 if the layer cannot be examined."""
    words = argparse.ArgumentParser("python -m linformer_from_scratch.examine", description=examine.__doc__)
    words.formatter_class = argparse.RawDescriptionHelpFormatter
    words.add_argument("layer", help="package.module:name, of a layer or a function that is or makes one")
    for name, usual in {"dim": None, "length": 128, "heads": None}.items():
        words.add_argument(f"--{name}", type=int, default=usual)
    words.add_argument("--exponent", type=float, default=2)
    for name in ("causal", "json"):
        words.add_argument(f"--{name}", action="store_true")
    options = vars(words.parse_args())
    as_json, (module, _, name) = options.pop("json"), options.pop("layer").partition(":")
    try:
        layer = getattr(import_module(module), name)
        given = inspect.signature(layer).parameters.values()
        is_free = all(one.default is not one.empty or one.kind in LOOSE for one in given)
        makes = is_free and not isinstance(layer, nn.Module)
        report = examine(layer() if makes else layer, **options)
    except Exception as error:  # of whatever type what makes the layer raises
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report.json(), indent=1) if as_json else report)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__] = examine  # type: ignore[assignment]
