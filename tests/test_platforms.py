"""What runs on Linux does not fail on Windows or macOS for a reason that can be read from the code.

All Python files of the project are read, the code cells of its notebooks, and programs held in strings. What
another system does differently at run time is not seen; for that the suite must run there.
"""

import ast
import contextlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("linformer_from_scratch", "tools", "tests", "chapters", "solutions")
POSIX_MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid", "killpg",
        "mkfifo", "nice", "openpty", "sched_getaffinity", "sched_setaffinity", "setpgid", "setsid",
        "sysconf", "uname",
    },
    "signal": {
        "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGSTOP", "SIGUSR1", "SIGUSR2",
        "alarm", "pthread_sigmask", "setitimer", "sigwait",
    },
}  # fmt: skip
POSIX_ARGUMENTS = {"preexec_fn", "pass_fds"}
SPOKEN = re.compile(r"\bos\.name\b|\bsys\.platform\b|\bhasattr\((?:os|signal|socket),|\bimportorskip\(")
LEAVES = ast.Return | ast.Raise | ast.Continue | ast.Break
MODE = re.compile(r"[rwax][bt+]*")
TEMPORARY = {"NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryFile"}
PROCESSES = {"Manager", "Pipe", "Pool", "Process", "Queue"}


class Program:
    """A parsed program in which it is known what every node stands in."""

    def __init__(self, text):
        self.tree = ast.parse(text)
        self.nodes = [*ast.walk(self.tree)]
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.conditions = {  # names that stand for a platform, such as WINDOWS = os.name == "nt"
            target.id
            for node in self.tree.body
            if isinstance(node, ast.Assign) and SPOKEN.search(ast.unparse(node.value))
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def speaks(self, node):
        """Does it ask for the platform, itself or by a name that does?"""
        names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        return bool(names & self.conditions or SPOKEN.search(ast.unparse(node)))

    def is_guarded(self, node):
        """Is the platform asked for around a node, or before it in a block around it?

        Around: the condition of an if, of a conditional expression, of `and`; a decorator; an import that may
        fail. Before: an if that leaves the block, an assertion, or a mark for all tests of a file.
        """
        while parent := self.parents.get(node):
            decorators = getattr(parent, "decorator_list", [])  # each is read by itself
            conditions = decorators if node not in decorators else []
            if isinstance(parent, ast.If | ast.IfExp):
                conditions = [parent.test]
            if isinstance(parent, ast.BoolOp):
                conditions = parent.values[: parent.values.index(node)]
            if (
                any(map(self.speaks, conditions))
                or may_fail(parent)
                or any(map(self.ends, above(node, parent)))
            ):
                return True
            node = parent
        return False

    def ends(self, statement):
        """Does it end its block on some platforms?"""
        if isinstance(statement, ast.If):
            last = statement.body[-1]
            leaves = isinstance(last, LEAVES) or ast.unparse(last).startswith("pytest.skip(")
            return leaves and self.speaks(statement.test)
        marks = isinstance(statement, ast.Assign) and ("pytestmark" in ast.unparse(statement.targets[0]))
        skips = isinstance(statement, ast.Assign) and "importorskip" in ast.unparse(statement.value)
        return skips or ((marks or isinstance(statement, ast.Assert)) and self.speaks(statement))


def may_fail(node):
    """Is it a try that expects imports to fail?"""
    return isinstance(node, ast.Try) and any("ImportError" in ast.unparse(one) for one in node.handlers)


def above(node, parent):
    """The statements that stand above a node in its block."""
    blocks = (getattr(parent, field, None) for field in ("body", "orelse", "finalbody"))
    block = next((block for block in blocks if isinstance(block, list) and node in block), [node])
    return block[: block.index(node)]


def posix_only(program):
    """Modules, names and arguments that only POSIX systems have, without a condition on the platform."""
    for node in program.nodes:
        found = set()
        if isinstance(node, ast.Import):
            found = {alias.name for alias in node.names} & POSIX_MODULES
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names} & POSIX_NAMES.get(node.module, set())
            found = names | {node.module} & POSIX_MODULES
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = {node.attr} & POSIX_NAMES.get(node.value.id, set())
        elif isinstance(node, ast.keyword) and node.arg in POSIX_ARGUMENTS:
            found = set() if program.speaks(node.value) else {node.arg}
        if found and not program.is_guarded(node):
            yield node, f"{', '.join(sorted(found))} without a condition on os.name or sys.platform"


def unnamed_encodings(program):
    """Files opened as text, and output read as text, whose encoding is left to the system.

    For a program's output errors= is enough: then the system's own encoding is meant, and nothing can fail.
    """
    for call in (node for node in program.nodes if isinstance(node, ast.Call)):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        reads = isinstance(given.get("text"), ast.Constant) and given["text"].value is True
        if reads and not {"encoding", "errors"} & {*given}:
            yield call, "text=True without encoding="
        if "encoding" not in given and is_of_text(call, name, given.get("mode")):
            yield call, f"{name} without encoding="


def is_of_text(call, name, named):
    """Does a call without encoding= open, read or write a text file?"""
    method, first, second = isinstance(call.func, ast.Attribute), *[*call.args, None, None][:2]
    if name in ("read_text", "write_text"):
        return method and len(call.args) <= (name == "write_text")
    if name in TEMPORARY:
        return "b" not in mode(named or first, "w+b")
    if name == "open" and not method:
        return "b" not in mode(named or second, "r")
    if name == "open":  # of a path: its first argument is a mode, if it has one
        return bool(re.fullmatch(MODE, mode(named or first, "r"))) and "b" not in mode(named or first, "r")
    return False


def mode(node, default):
    """The mode that a call names; what is no constant is none."""
    return default if node is None else str(getattr(node, "value", "?"))


def joined_paths(program):
    """Paths put together by os.path.join and not by pathlib."""
    for node in program.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "join" and ast.unparse(node) == "os.path.join":
            yield node, "os.path.join instead of pathlib"


def unnamed_starts(program):
    """New processes whose start method is left to the system: a fork on one, a new interpreter on another."""
    for call in (node for node in program.nodes if isinstance(node, ast.Call)):
        home, _, name = ast.unparse(call.func).rpartition(".")
        if home in ("multiprocessing", "mp") and name in PROCESSES:
            yield call, f"{home}.{name} without multiprocessing.get_context"
        if name == "get_context":
            method = ast.unparse(call.args[0]) if call.args else ""
            if not method or (method != "'spawn'" and not program.is_guarded(call)):
                yield call, f"get_context({method}), neither spawn nor under a condition on the platform"
        if name == "ProcessPoolExecutor" and "mp_context" not in {keyword.arg for keyword in call.keywords}:
            yield call, "ProcessPoolExecutor without mp_context="
        if name == "set_start_method":
            yield call, "set_start_method, which changes other people's processes too"


RULES = [posix_only, unnamed_encodings, joined_paths, unnamed_starts]


def texts():
    """Place and text of every program of the project, but for this one, which holds bad ones."""
    yield "conftest.py", (ROOT / "conftest.py").read_text(encoding="utf-8")
    for folder in FOLDERS:
        for path in sorted({*(ROOT / folder).rglob("*.py")} - {Path(__file__)}):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["cell_type"] == "code":
                    yield f"{path.relative_to(ROOT).as_posix()}, cell {cell['id']}", "".join(cell["source"])


def programs(text):
    """The first line of a program, and it; then those that it holds in strings where no condition stands."""
    outer = Program(text)
    yield 1, outer
    for node in outer.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            with contextlib.suppress(SyntaxError):  # then it is a sentence
                inner = Program(node.value)
                if not outer.is_guarded(node):
                    yield node.lineno, inner


def found(text, rules):
    """Rule -> what it finds in a program and in the programs that it holds."""
    read = [*programs(text)]
    return {
        rule: [f"{first + node.lineno - 1}: {what}" for first, one in read for node, what in rule(one)]
        for rule in rules
    }


@pytest.fixture(scope="module")
def broken():
    """Rule -> the places that break it."""
    places = {rule: [] for rule in RULES}
    for place, text in texts():
        for rule, lines in found(text, RULES).items():
            places[rule] += [f"{place}:{line}" for line in lines]
    return places


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_program_of_the_project_breaks_a_rule(broken, rule):
    assert not broken[rule], "\n" + "\n".join(broken[rule])


def test_every_program_of_the_project_is_read():
    places = [place for place, _ in texts()]
    assert {"conftest.py", "tools/course.py", "tests/lab.py", "chapters/scenes/04_low_rank.py"} <= {*places}
    assert sum(place.startswith("chapters/12_limits.ipynb") for place in places) > 30


REFUSED = {
    posix_only: [
        "import fcntl",
        "def f():\n    from resource import getrlimit",
        "from signal import SIGKILL",
        "import os\nos.killpg(1, 2)",
        "if os.name == 'nt':\n    pass\nos.fork()",
        "if value:\n    os.getuid()",
        "@cache\ndef f():\n    return os.sched_getaffinity(0)",
        "run(preexec_fn=os.close)",
        "@pytest.mark.skipif(os.name == 'nt', reason='')\n@mark(signal.SIGKILL)\ndef f():\n    pass",
        "run(pass_fds=[3])",
        "os.fork() and os.name == 'posix'",
        "CODE = 'import os, signal; os.kill(1, signal.SIGKILL)'",
        "try:\n    import pwd\nexcept ValueError:\n    pass",
    ],
    unnamed_encodings: [
        "open('a')",
        "open('a', 'w')",
        "open('a', mode='r')",
        "path.open()",
        "path.open('a')",
        "path.read_text()",
        "path.write_text(text)",
        "tempfile.TemporaryFile('w+')",
        "subprocess.run(command, text=True)",
        "CODE = 'import a; open(a.b)'",
    ],
    joined_paths: ["os.path.join(a, b)"],
    unnamed_starts: [
        "multiprocessing.Process(target=f)",
        "mp.Pool(2)",
        "multiprocessing.get_context()",
        "if sys.platform == 'linux':\n    multiprocessing.get_context()",
        "multiprocessing.get_context('fork')",
        "ProcessPoolExecutor(2)",
        "multiprocessing.set_start_method('spawn')",
    ],
}
ALLOWED = {
    posix_only: [
        "if os.name != 'nt':\n    import fcntl",
        "if sys.platform == 'win32':\n    import msvcrt\nelse:\n    import fcntl",
        "try:\n    import resource\nexcept ImportError:\n    resource = None",
        "def f():\n    if os.name == 'nt':\n        return\n    os.fork()",
        "def f():\n    assert os.name != 'nt'\n    os.kill(1, signal.SIGKILL)",
        "def f():\n    if not hasattr(os, 'fork'):\n        pytest.skip('none')\n    os.fork()",
        "@pytest.mark.skipif(os.name == 'nt', reason='fork')\ndef f():\n    def g():\n        os.fork()",
        "posix = pytest.mark.skipif(os.name == 'nt', reason='fork')\n@posix\ndef f():\n    os.fork()",
        "pytestmark = pytest.mark.skipif(os.name == 'nt', reason='fork')\ndef f():\n    os.fork()",
        "run(pass_fds=() if os.name == 'nt' else [3])",
        "os.name == 'posix' and os.fork()",
        "if hasattr(os, 'killpg'):\n    os.killpg(1, 9)",
        "resource = pytest.importorskip('resource')\nimport resource",
        "signal.SIGTERM",
        "'Do not import fcntl.'",
    ],
    unnamed_encodings: [
        "open('a', encoding='utf-8')",
        "open('a', 'rb')",
        "open('a', mode='rb')",
        "path.open('wb')",
        "path.read_text(encoding='utf-8')",
        "path.read_text('utf-8')",
        "path.write_text(text, 'utf-8')",
        "lab.open('page.ipynb', cells)",
        "read_text(path)",
        "tempfile.NamedTemporaryFile()",
        "subprocess.run(command, text=True, encoding='utf-8')",
        "subprocess.run(command, text=True, errors='replace')",
        "subprocess.run(command, capture_output=True)",
    ],
    joined_paths: ["folder / 'name'", "os.path.realpath(a)", "', '.join(a)"],
    unnamed_starts: [
        "multiprocessing.get_context('spawn')",
        "if sys.platform == 'linux':\n    multiprocessing.get_context('forkserver')",
        "ProcessPoolExecutor(2, mp_context=spawn)",
        "psutil.Process(1)",
    ],
}


def pairs(table):
    return [(rule, text) for rule, snippets in table.items() for text in snippets]


@pytest.mark.parametrize(("rule", "text"), pairs(REFUSED))
def test_a_rule_refuses_what_it_is_there_for(rule, text):
    assert found(text, [rule])[rule]


@pytest.mark.parametrize(("rule", "text"), pairs(ALLOWED))
def test_a_rule_lets_pass_what_works_everywhere(rule, text):
    assert found(text, [rule]) == {rule: []}
