"""Every chapter from 01 on has its clip, made from the scene as it stands. Needs neither manim nor Cairo."""

import importlib.util
import json
import shutil
import struct
import sys
import types
from io import BytesIO
from pathlib import Path

import pytest
from jupyter_lab import open_page
from lectures import chapters
from live import wait_until
from PIL import Image, ImageChops, ImageStat
from scenes import digest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "chapters" / "scenes"
SCENES = sorted(FOLDER.glob("[0-9][0-9]_*.py"))

every_scene = pytest.mark.parametrize("scene", SCENES, ids=lambda path: path.stem)


def media(scene, suffix):
    return scene.parent / "media" / f"{scene.stem}{suffix}"


def facts(scene):
    return json.loads(media(scene, ".json").read_text(encoding="utf-8"))


def seconds(clip):
    """Duration by the movie header: version and flags, created, changed, time scale, duration."""
    data = clip.read_bytes()
    flags, _, _, scale, duration = struct.unpack_from(">5I", data, data.index(b"mvhd") + 4)
    assert flags == 0, "version 0 of the header was expected, with 32-bit numbers"
    return duration / scale


def test_every_chapter_from_01_on_has_a_scene():
    with_a_clip = {path.stem for path in chapters()} - {"00_start_here"}
    assert with_a_clip <= {scene.stem for scene in SCENES}


def test_media_holds_a_clip_a_still_and_a_description_for_each_scene_and_nothing_else():
    expected = {media(scene, suffix) for scene in SCENES for suffix in (".mp4", ".png", ".json")}
    assert set((FOLDER / "media").iterdir()) == expected


@every_scene
def test_clip_was_rendered_from_the_scene_as_it_stands(scene):
    assert facts(scene)["scene"] == digest(scene), "run `make scenes`"


@every_scene
def test_clip_is_short_and_small(scene):
    clip = media(scene, ".mp4")
    assert 5 < seconds(clip) <= 20
    assert seconds(clip) == pytest.approx(facts(scene)["seconds"], abs=0.1)
    assert clip.stat().st_size < 1_000_000


@every_scene
def test_still_is_a_small_720p_picture_that_is_not_blank(scene):
    still = media(scene, ".png")
    assert still.stat().st_size < 80_000
    with Image.open(still) as picture:
        assert picture.size == (1280, 720)
        assert all(low < 64 and high == 255 for low, high in picture.convert("RGB").getextrema())


@pytest.mark.browser
@pytest.mark.slow
@every_scene
def test_a_clip_shows_its_last_moment_until_it_is_played(browser, scene, tmp_path):
    with Image.open(media(scene, ".png")) as still:
        last = still.convert("RGB")
    blank = difference(Image.new("RGB", last.size, "white"), last)
    (tmp_path / "clip.html").write_text(f'<video src="{media(scene, ".mp4").as_uri()}">', encoding="utf-8")
    with open_page(browser, *last.size, at=tmp_path / "clip.html") as page:
        video = page.locator("video")
        wait_until(lambda: difference(picture(video.screenshot()), last) < blank / 2, "the last moment")


def picture(png):
    """A picture of its bytes."""
    return Image.open(BytesIO(png)).convert("RGB")


def difference(one, other):
    """Of two pictures, the mean over their pixels."""
    return sum(ImageStat.Stat(ImageChops.difference(one.resize(other.size), other)).mean)


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """tools/scenes.py at work on a copy of the scenes; it lists what it would render in tool.rendered."""
    ignored = shutil.ignore_patterns("__pycache__", "*.txt")
    for folder in ("tools", "chapters/scenes", "linformer_from_scratch"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    spec = importlib.util.spec_from_file_location("scenes_tool", tmp_path / "tools" / "scenes.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.rendered, tool.really_render = [], tool.render
    monkeypatch.setattr(tool, "render", lambda path: tool.rendered.append(path.stem))
    monkeypatch.setattr(sys, "argv", ["scenes.py"])
    monkeypatch.setitem(sys.modules, "manim", types.ModuleType("manim"))
    return tool


def change(path):
    path.write_text(path.read_text(encoding="utf-8") + "CHANGED = True\n", encoding="utf-8")


@pytest.mark.slow
def test_tool_renders_nothing_and_needs_no_manim_while_nothing_has_changed(tool, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "manim", None)
    tool.main()
    assert tool.rendered == []
    assert capsys.readouterr().out.count("unchanged") == len(SCENES)


@pytest.mark.slow
def test_tool_renders_only_the_scene_that_changed_and_what_is_lost(tool):
    change(tool.SCENES / "02_multihead.py")
    (tool.MEDIA / "01_attention.png").unlink()
    tool.main()
    assert tool.rendered == ["01_attention", "02_multihead"]


@pytest.mark.slow
def test_without_manim_the_tool_says_how_to_get_it_and_an_unknown_number_is_refused(tool, monkeypatch):
    change(tool.SCENES / "01_attention.py")
    monkeypatch.setitem(sys.modules, "manim", None)
    monkeypatch.setattr(tool, "render", tool.really_render)
    with pytest.raises(SystemExit, match="manim is missing: run `make scenes`"):
        tool.main()
    monkeypatch.setattr(sys, "argv", ["scenes.py", "77"])
    with pytest.raises(SystemExit, match="no name begins with 77; names look like 01_attention"):
        tool.main()
