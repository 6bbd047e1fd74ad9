"""Drives a real JupyterLab with a live kernel, through a real Chromium without a window."""

import json
import os
import secrets
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

import nbformat
from live import LIMIT_S, Live, wait_until
from playwright.sync_api import sync_playwright

from linformer_from_scratch.course.widgets.page import page as page_of

ROOT = Path(__file__).parents[1]
AXE = ROOT / "tests" / "vendor" / "axe.min.js"
CHROMIUM_OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
]
LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "data:", "blob:", "about:")
SETTINGS = {
    # Cells out of sight stay in the page.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@contextmanager
def open_browser(chromium):
    """A browser for many pages; to start it takes longer than most pages do."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@contextmanager
def open_page(browser, width=1280, height=800, at=None):
    """A page that shares nothing with the others and reaches nothing but this machine; at: file or address.

    `page.files` collects what it loads of this disk, `page.outside` what it asked for elsewhere,
    `page.complaints` its console errors and exceptions.
    """
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(LIMIT_S * 1000)
    page.outside, page.complaints, page.files = [], [], set()

    def guard(route):
        if route.request.url.startswith("file:"):
            page.files.add(Path(unquote(urlparse(route.request.url).path)))
        if route.request.url.startswith(LOCAL):
            route.continue_()
        else:
            page.outside.append(route.request.url)
            route.abort()

    page.route("**/*", guard)
    page.on("websocket", lambda s: None if s.url.startswith(LOCAL) else page.outside.append(s.url))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda m: page.complaints.append(m.text) if m.type == "error" else None)
    if at:
        page.goto(at.as_uri() if isinstance(at, Path) else at)
    yield page
    page.close()


@contextmanager
def alive(browser, folder, *shown):
    """A Live of each of these widgets, in a page opened from disk that complains of nothing."""
    file = folder / "page.html"
    file.write_text(page_of(shown), encoding="utf-8")
    with open_page(browser, 1280, 900, at=file) as page:
        yield [Live(page, page.locator(".lw").nth(i)) for i in range(len(shown))]
        assert page.complaints == [] and page.outside == []


def barriers(page, scheme):
    """Rules of axe-core that a page breaks seriously, each with a place; in the dark only colours differ."""
    options = {"resultTypes": ["violations"], "preload": False}  # from disk it may not read style sheets
    options |= {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
    page.add_script_tag(path=AXE)
    broken = page.evaluate("options => axe.run(options)", options)["violations"]
    serious = [one for one in broken if one["impact"] in ("serious", "critical")]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in serious]


class Lab:
    """JupyterLab in a folder, with settings of its own, seen through one page. Use it as a context manager.

    Args:
        folder: where its notebooks and settings are written.
        page: from `open_page`.
    """

    def __init__(self, folder, page):
        self.folder, self.page = folder, page
        self._token = secrets.token_hex(16)

    def __enter__(self):
        for plugin, settings in SETTINGS.items():
            path = self.folder / "settings" / f"{plugin}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings), encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        own = {f"JUPYTER_{name.upper()}_DIR": name for name in ("config", "data", "runtime")}
        own |= {f"JUPYTERLAB_{name.upper()}_DIR": name for name in ("settings", "workspaces")}
        own["IPYTHONDIR"] = "ipython"
        command = [sys.executable, "-m", "jupyterlab", "--config", str(ROOT / "tools/jupyter_lab_config.py")]
        command += ["--no-browser", f"--port={self._port}", f"--ServerApp.root_dir={self.folder}"]
        self._log = (self.folder / "server.log").open("w+", encoding="utf-8")
        self._server = subprocess.Popen(
            [*command, f"--IdentityProvider.token={self._token}"],
            env=os.environ | {name: str(self.folder / path) for name, path in own.items()},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        wait_until(self._answers, "JupyterLab's server")
        return self

    def __exit__(self, *_):
        self._server.terminate()
        try:
            self._server.wait(LIMIT_S)
        except subprocess.TimeoutExpired:  # it waits for a kernel; what was tested has been seen
            self._server.kill()
            self._server.wait()
        self._log.close()

    def open(self, name, sources, slide_types=None):
        """Write a notebook, open it and run it to its end; a source that begins with # is Markdown."""
        slide_types = slide_types or [None] * len(sources)
        cells = []
        for source, slide_type in zip(sources, slide_types, strict=True):
            new = nbformat.v4.new_markdown_cell if source.startswith("#") else nbformat.v4.new_code_cell
            metadata = {"slideshow": {"slide_type": slide_type}} if slide_type else {}
            cells.append(new(source, metadata=metadata))
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), self.folder / name)
        self.show(name)
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        last = self.page.locator(".jp-CodeCell .jp-InputPrompt").last
        wait_until(lambda: last.inner_text().strip("[]: ").isdigit(), "the last cell")

    def show(self, name):
        """Open a notebook that is there, as it is."""
        self.page.goto(self._url(f"lab/tree/{name}") + "&reset", wait_until="domcontentloaded")
        # The notebook's own indicator says idle too early: cells sent before the status bar does are lost.
        status = self.page.locator("#jp-main-statusbar")
        wait_until(lambda: "| Idle" in status.inner_text(), "the kernel")

    def widget(self, i):
        """The live widget below code cell i."""
        return Live(self.page, self.page.locator(".jp-CodeCell").nth(i).locator(".lw"))

    def run(self, i):
        """Run code cell i; what it prints."""
        cell = self.page.locator(".jp-CodeCell").nth(i)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        cell.locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")
        wait_until(lambda: (now := prompt.inner_text()) != before and now.strip("[]: ").isdigit(), "a cell")
        return cell.locator(".jp-OutputArea-output").inner_text().strip()

    def _url(self, path):
        return f"http://127.0.0.1:{self._port}/{path}?token={self._token}"

    def _answers(self):
        if self._server.poll() is not None:
            self._log.seek(0)
            raise AssertionError(f"JupyterLab's server ended: {self._log.read()[-2000:]}")
        try:
            return urllib.request.urlopen(self._url("api/status"), timeout=2).status == 200
        except OSError:
            return False
