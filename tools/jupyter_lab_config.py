"""JupyterLab as the course runs it: jupyter lab --config tools/jupyter_lab_config.py"""

import os
import sys
from pathlib import Path

screens = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}  # a browser in the terminal cannot show JupyterLab

c = get_config()  # noqa: F821 -- JupyterLab defines it for this file

c.ServerApp.root_dir = str(Path(__file__).resolve().parents[1])
c.LabApp.default_url = "/lab/tree/chapters/00_start_here.ipynb"
c.ServerApp.open_browser = not sys.platform.startswith("linux") or not screens.isdisjoint(os.environ)

c.ServerApp.ip = "127.0.0.1"
c.ServerApp.allow_root = True  # containers and servers; only this machine can connect

# Nothing asks the internet, nor whether it may.
c.LabApp.app_settings_dir = str(Path(__file__).resolve().parent / "lab_settings")
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"

# The address is the only thing to read, and Ctrl-C asks no question.
c.Application.log_level = "CRITICAL"
c.ServerApp.answer_yes = True
