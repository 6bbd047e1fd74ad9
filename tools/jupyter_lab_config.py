"""JupyterLab for the course: on this machine only, asking nothing of the internet."""

import os

c = get_config()  # noqa: F821  Jupyter defines it
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0  # in containers
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
screen = (
    os.name == "nt"
    or os.uname().sysname == "Darwin"
    or os.environ.get("DISPLAY")
    or os.environ.get("WAYLAND_DISPLAY")
)
if not screen:
    c.ServerApp.open_browser = False
    print("No screen here: open one of the addresses below in a browser.")
