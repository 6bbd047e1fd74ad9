"""What others see of the course is true: workflows, issue forms, container, citation, changelog, security."""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import check_jsonschema
import course
import pytest
import yaml
from click.testing import CliRunner
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NEWEST = 14  # of Python 3
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/*_*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}
KNOWN = {"github.repository": "o/r", "github.server_url": "https://s", "github.run_id": "7"}  # in a run
KNOWN |= {"github.token": "t"}
# A program that writes down, a line each, what it is asked; of issues it lists those in $OPEN.
STUB = '#!/bin/sh\n[ "$1 $2" = "issue list" ] && echo "$OPEN" || printf "%s\\n" "$@" > said\n'
unix = pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="needs make and bash")


def steps():
    """Each `run:` step of each workflow, for each target of its matrix, with its expressions filled in."""
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            for target in job.get("strategy", {}).get("matrix", {}).get("target", [""]):
                text = json.dumps([step for step in job["steps"] if "run" in step])
                for name, value in {**KNOWN, "matrix.target": target}.items():
                    text = text.replace(f"${{{{ {name} }}}}", value)
                assert "${{" not in text, "an expression that nobody has looked at"
                yield from json.loads(text)


def run(script, folder, **variables):
    """A script as a runner's bash runs it, in a folder, with a stub of gh; exit code, what gh was asked."""
    program, said = folder / "gh", folder / "said"
    program.write_text(STUB, encoding="utf-8")
    program.chmod(0o755)
    said.write_text("", encoding="utf-8")
    variables["PATH"] = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=os.environ | variables)
    return done.returncode, said.read_text(encoding="utf-8").splitlines()


def opens_an_issue_once(step, folder):
    title = step["env"]["TITLE"]
    assert title in [f"make test-{what} fails" for what in ("all", "newest", "floor", "wheel")]
    body = "It failed in this run: https://s/o/r/actions/runs/7"
    for others in ("", f"{title} again\nA step"):
        code, said = run(step["run"], folder, **step["env"], OPEN=others)
        assert code == 0 and said == ["issue", "create", "--title", title, "--body", body]
    assert run(step["run"], folder, **step["env"], OPEN=f"A step\n{title}") == (0, [])


def refuses_another_tag(step, folder):
    shutil.copy(ROOT / "pyproject.toml", folder)
    codes = {tag: run(step["run"], folder, GITHUB_REF_NAME=tag)[0] for tag in (f"v{VERSION}", VERSION, "v9")}
    assert codes == {f"v{VERSION}": 0, VERSION: 1, "v9": 1}


def packs_every_deck(step, folder):
    (folder / "build/slides/media").mkdir(parents=True)
    (folder / "build/slides/media/a.mp4").touch()
    assert run(step["run"], folder) == (0, [])
    assert "slides/media/a.mp4" in zipfile.ZipFile(folder / "build/slides.zip").namelist()


def attaches_wheel_and_decks(step, folder):
    (folder / "build/wheel").mkdir(parents=True)
    (folder / "build/wheel/a.whl").touch()
    code, said = run(step["run"], folder, **step["env"], GITHUB_REF_NAME="v1")
    assert code == 0 and said[:5] == ["release", "create", "v1", "build/wheel/a.whl", "build/slides.zip"]


def takes_the_wheel_of_this_release(step, folder):
    code, said = run(step["run"], folder, **step["env"], GITHUB_REF_NAME="v1")
    assert code == 0 and said == ["release", "download", "v1", "--pattern", "*.whl", "--dir", "dist"]


EFFECTS = {
    "Open an issue, unless one is open": opens_an_issue_once,
    "See that the tag is the version": refuses_another_tag,
    "Pack the decks": packs_every_deck,
    "Create the release": attaches_wheel_and_decks,
    "Take the release's wheel": takes_the_wheel_of_this_release,
}


def is_made(*targets):
    english = os.environ | {"LC_ALL": "C"}
    command = ["make", "--dry-run", *targets]
    done = subprocess.run(command, cwd=ROOT, env=english, capture_output=True, text=True, encoding="utf-8")
    return done.returncode == 0 and "Nothing to be done" not in done.stdout  # as for a phony one without rule


@unix
@pytest.mark.parametrize("step", list(steps()), ids=lambda step: step.get("name", step["run"]))
def test_a_step_does_what_it_is_there_for(step, tmp_path):
    if "name" in step:
        EFFECTS[step["name"]](step, tmp_path)
    else:  # a single command
        make, *targets = step["run"].split()
        assert make == "make" and is_made(*targets)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_fit_their_schema(schema):
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, *map(str, files)])
    assert files and done.exit_code == 0, done.output


def test_only_two_jobs_prove_who_they_are_and_one_of_them_waits_for_its_owner():
    found, used = {}, []
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert "id-token" not in workflow["permissions"]
        for name, job in workflow["jobs"].items():
            used += [step["uses"] for step in job["steps"] if "uses" in step]
            if "id-token" in job.get("permissions", {}):
                found[f"{path.stem} {name}"] = job
    assert set(found) == {"book deploy", "release publish"}
    publish = found["release publish"]
    assert (publish["if"], publish["environment"]) == ("vars.PUBLISH == 'true'", "pypi")
    assert [one for one in used if not re.search("@[0-9a-f]{40}$", one)] == []


def test_every_python_allowed_is_tested_and_every_system():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    short = jobs["short"]["strategy"]["matrix"]["include"]
    oldest = int(PROJECT["project"]["requires-python"].removeprefix(">=3."))
    assert {one["python"] for one in short} == {f"3.{minor}" for minor in range(oldest, NEWEST + 1)}
    assert {one["system"] for one in short} == {"ubuntu-latest", "macos-latest", "windows-latest"}


def test_a_container_opens_chapter_00_with_the_python_of_the_set_up():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    editor = json.loads((ROOT / ".vscode/settings.json").read_text(encoding="utf-8"))
    (chapter,) = container["customizations"]["codespaces"]["openFiles"]
    assert chapter.startswith("chapters/00_") and (ROOT / chapter).exists()
    python, *command = container["postCreateCommand"].split()
    assert python == "python3"
    assert subprocess.run([sys.executable, *command, "--help"], cwd=ROOT, capture_output=True).returncode == 0
    for settings in (editor, container["customizations"]["vscode"]["settings"]):
        assert settings["python.defaultInterpreterPath"].endswith(f"Folder}}/{course.VENV.name}/bin/python")


@unix
def test_binder_adds_the_pretrained_model_without_what_it_says_it_needs(tmp_path):
    (tmp_path / "python").write_text(STUB, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    code, said = run(str(ROOT / "postBuild"), tmp_path)
    model = PROJECT["dependency-groups"]["pretrained"]
    assert code == 0 and said[:3] == ["-m", "pip", "install"]
    assert said[-4:] == ["--no-deps", "-c", "constraints.txt", *model]


def test_the_version_is_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## \[(.+)\] - (.+)$", CHANGES, re.MULTILINE).groups()
    assert newest == (VERSION, str(cited["date-released"])) and cited["version"] == VERSION


def test_the_licence_is_the_same_everywhere_and_names_what_there_is():
    licence, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("LICENSE", "README.md"))
    assert PROJECT["project"]["license"] == "MIT AND CC-BY-4.0"
    assert "words are under CC BY 4.0, the code is under the MIT" in licence
    assert "words are CC BY 4.0, the code is MIT" in readme
    named = re.findall(r"(?:lab|linformer_from_scratch)/[\w/.]*\w", licence)
    assert len(named) == 2 and all((ROOT / path).exists() for path in named)


def test_every_promised_name_imports():
    (block,) = re.findall(r"```python\n(.+?)```", CHANGES, re.DOTALL)
    promised = [(line.module, alias.name) for line in ast.parse(block).body for alias in line.names]
    assert len(promised) > 25
    assert [name for place, name in promised if not hasattr(importlib.import_module(place), name)] == []


@unix
def test_every_promised_command_is_a_target():
    promised = re.findall(r"`make ([a-z-]+)`", CHANGES.split(f"### What {VERSION} promises")[1])
    assert len(promised) == 8 and [target for target in promised if not is_made(target)] == []


def test_pickle_is_used_only_where_security_says_and_torch_load_nowhere():
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    files = [one for top in ("linformer_from_scratch", "lab", "tools") for one in (ROOT / top).rglob("*.py")]
    for path in files:
        text = path.read_text(encoding="utf-8")
        uses = re.search(r"^\s*(import|from) pickle|_object\(|_object_list\(", text, re.MULTILINE)
        assert not uses or path.relative_to(ROOT).as_posix() in security
        assert "torch.load(" not in text


def test_jupyterlab_listens_on_this_machine_only_and_asks_for_a_token():
    settings = PyFileConfigLoader(str(ROOT / "tools/jupyter_lab_config.py")).load_config()
    assert settings.ServerApp.ip == "127.0.0.1"
    assert "IdentityProvider" not in settings and not {"token", "password"} & set(settings.ServerApp)
