"""JupyterLab as the course runs it: jupyter lab --config tools/jupyter_lab_config.py"""

import os
import sys
from pathlib import Path

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

VIEW = "application/vnd.jupyter.widget-view+json"


class Notebooks(AsyncLargeFileManager):
    """Opens a notebook whose kernel is gone with the stills of its widgets: those lived in that kernel."""

    async def get(self, path, *args, **kwargs):
        """See `ContentsManager.get`."""
        model = await super().get(path, *args, **kwargs)
        running = [session["path"] for session in await self.parent.session_manager.list_sessions()]
        if model["type"] == "notebook" and model["content"] and model["path"] not in running:
            for cell in model["content"]["cells"]:
                for output in cell.get("outputs", []):
                    output.get("data", {}).pop(VIEW, None)
        return model


screens = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}  # a browser in the terminal cannot show JupyterLab

c = get_config()  # noqa: F821 -- JupyterLab defines it for this file

c.ServerApp.root_dir = str(Path(__file__).resolve().parents[1])
c.ServerApp.contents_manager_class = Notebooks
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
