"""Where a Chromium is, for handouts and for browser tests."""

import os
import shutil


def find_chromium() -> str | None:
    """Path of a Chromium: the one named by CHROMIUM, or the first on the PATH."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)
