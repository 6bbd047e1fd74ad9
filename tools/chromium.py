"""Where a Chromium is, for handouts and for browser tests."""

import os
import shutil

from linformer_from_scratch.common.files import expanded


def find_chromium() -> str | None:
    """Path of a Chromium: the one named by CHROMIUM, or the first on the PATH."""
    names = [os.environ.get("CHROMIUM") or "chromium", "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if (path := shutil.which(str(expanded(name))))), None)
