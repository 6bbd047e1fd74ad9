"""Render the scenes that changed since their clip was made: python tools/scenes.py [01 02 …]

Beside each clip, chapters/scenes/media/ keeps a still (the last frame) and a JSON with the clip's description
and the hash of the scene that it was rendered from.
"""

import hashlib
import importlib
import json
import sys
import time
from itertools import chain
from pathlib import Path

from lectures import numbered
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
SCENES = ROOT / "chapters" / "scenes"
MEDIA = SCENES / "media"
ENCODING = {"crf": "28", "preset": "slow", "tune": "animation", "g": "600"}
MOVES = {"14_fields": "fields.webp"}  # clips, and what the README shows
BAND = 72  # pixels below the caption, for the player\'s bar
EVERY, WIDTH, QUALITY = 3, 640, 60  # each third frame; pixels; of 100
MISSING = "manim is missing: run `make scenes`, or `python tools/course.py install --with scenes`, first"


def is_current(path: Path) -> bool:
    """Whether clip, still and JSON exist and come from this scene."""
    *_, facts = files = outputs(path)
    whole = all(file.exists() for file in files)
    return whole and json.loads(facts.read_text(encoding="utf-8"))["scene"] == digest(path)


def digest(path: Path) -> str:
    """The hash of a scene's own file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def outputs(path: Path) -> list[Path]:
    """Clip, still and JSON of a scene."""
    return [MEDIA / f"{path.stem}{suffix}" for suffix in (".mp4", ".png", ".json")]


def load(path: Path) -> type:
    """The one scene class that the file defines."""
    sys.path.insert(0, str(SCENES))  # scenes import the look beside them
    module = importlib.import_module(path.stem)
    (scene,) = (c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__)
    return scene


def render(path: Path) -> None:
    """Write the clip at 720p30, the last frame as a still, and the JSON; one sentence without manim."""
    try:
        import manim
    except ImportError as error:  # or a library that it needs
        sys.exit(f"{MISSING} ({error})")
    settings = {
        "quality": "medium_quality",  # 1280×720 at 30 frames a second
        "media_dir": str(ROOT / "build" / "scenes"),
        "output_file": path.stem,
        "disable_caching": True,  # stale parts would survive a change in the package's numbers
        "progress_bar": "none",
        "verbosity": "WARNING",
    }
    clip, still, facts = outputs(path)
    with manim.tempconfig(settings):
        Scene = load(path)
        scene = Scene()
        scene.render()
    MEDIA.mkdir(exist_ok=True)
    last = scene.renderer.camera.get_image().convert("RGB")
    shrink(scene.renderer.file_writer.movie_file_path, clip, last)
    last.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1).save(still, optimize=True)  # keeps rare colours
    record = {
        "description": Scene.__doc__.splitlines()[0],
        "manim": manim.__version__,
        "seconds": round(scene.renderer.time, 1),
        "scene": digest(path),
    }
    if path.stem in MOVES:
        move(clip, SCENES.parent / MOVES[path.stem])
    facts.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def shrink(source: Path, clip: Path, last: Image.Image) -> None:
    """Encode again with few key frames, which flat pictures barely need: less than half the bytes.

    The first frame is the last one, which a player shows until it plays; below each is the player's bar.
    """
    import av

    with av.open(source) as rendered, av.open(clip, "w", options={"movflags": "faststart"}) as smaller:
        before = rendered.streams.video[0]
        after = smaller.add_stream("libx264", rate=before.average_rate, options=ENCODING)
        after.width, after.height, after.pix_fmt = before.width, before.height + BAND, "yuv420p"
        for picture in chain([last], (frame.to_image() for frame in rendered.decode(before))):
            paper = Image.new("RGB", (after.width, after.height), "white")
            paper.paste(picture)
            smaller.mux(after.encode(av.VideoFrame.from_image(paper)))
        smaller.mux(after.encode())


def move(clip: Path, picture: Path) -> None:
    """Write a clip as a small picture that moves; the last moment stays for two seconds."""
    import av

    with av.open(clip) as rendered:
        stream = rendered.streams.video[0]
        rate, frames = float(stream.average_rate), [*rendered.decode(stream)][EVERY * 4 :: EVERY]
    size = WIDTH, WIDTH * frames[0].height // frames[0].width
    first, *others = (frame.to_image().resize(size, Image.Resampling.LANCZOS) for frame in frames)
    others += [others[-1]] * round(2 * rate / EVERY)
    ms = round(1000 * EVERY / rate)
    first.save(
        picture, save_all=True, append_images=others, duration=ms, loop=0, quality=QUALITY, minimize_size=True
    )


def main() -> None:
    """Render what changed among the scenes named on the command line, or among all."""
    for path in numbered(sorted(SCENES.glob("[0-9][0-9]_*.py")), sys.argv[1:]):
        done = "unchanged"
        if not is_current(path):
            start = time.perf_counter()
            render(path)
            done = f"rendered in {time.perf_counter() - start:.0f} s"
        print(f"{path.relative_to(ROOT)}: {done}")


if __name__ == "__main__":
    main()
