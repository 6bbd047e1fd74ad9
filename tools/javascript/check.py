"""The types of the widgets' JavaScript, where there is npm: python tools/javascript/check.py"""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOM = HERE.parents[1] / "build" / "node"  # the compiler, kept between runs
COMPILER = "typescript@7.0.2"


def main() -> None:
    """Check, or say why not."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(print("JavaScript not checked: there is no npm"))
    tsc = ROOM / "node_modules" / ".bin" / "tsc"
    if not tsc.exists():
        install = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(ROOM), COMPILER]
        if subprocess.run(install, capture_output=True).returncode:
            sys.exit(print(f"JavaScript not checked: npm could not install {COMPILER}"))
    sys.exit(subprocess.run([shutil.which(str(tsc)) or str(tsc), "-p", str(HERE)]).returncode)


if __name__ == "__main__":
    main()
