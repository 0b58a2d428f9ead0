"""The rules of the house that can be read off the source: each a function from one file to its complaints."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "polystein"

# A module imports only from rooms before its own, and from its own package.
ROOMS = (
    "_types _checks _functions numerics storage tables stein kernels pairs approximate"
    " discrepancy weights bijections batches target"
    " geometry lanczos modes gaussian_start curvature methods diagnostics posterior flow checkpoint progress loop run infer"
    " modelcheck gof thinning models data interop report quality experiments cli __main__"
).split()
OPTIONAL = set("matplotlib numpyro pymc torch sklearn arviz arviz_base blackjax pooch openpyxl pandas".split())
SHARDING = {"sharding", "shard_map", "make_mesh", "NamedSharding"}
SERIALISERS = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal"}
# jax calls that make no array and start no device
TRANSFORMS = set("jit vmap grad value_and_grad custom_jvp custom_vjp checkpoint named_call".split())
MAX_LINES = 350


@dataclass(frozen=True)
class Source:
    """One file: its path inside the package, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        return PurePosixPath(self.path).parts[0].removesuffix(".py")


def imported(source: Source, nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import among the nodes; `from a import b` is a.b."""
    here = ("polystein", *PurePosixPath(source.path).parent.parts)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = here[: len(here) - node.level + 1] if node.level else ()
            base = ".".join([*parent, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that is evaluated when the module is imported: no bodies of functions, no TYPE_CHECKING blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            defaults = [*child.args.defaults, *filter(None, child.args.kw_defaults), *getattr(child, "decorator_list", [])]
            for part in defaults:
                yield part
                yield from run_at_import(part)
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for part in child.orelse:
                yield part
                yield from run_at_import(part)
        else:
            yield child
            yield from run_at_import(child)


def imports_point_upward(source: Source) -> Iterator[str]:
    if source.path == "__init__.py":
        return
    if source.room not in ROOMS:
        yield f"{source.path}: no such room; add {source.room!r} to ROOMS where it belongs"
        return
    for line, name in imported(source, ast.walk(source.tree)):
        package, _, inside = name.partition(".")
        room = inside.partition(".")[0]
        if package != "polystein" or room == source.room:
            continue
        if room not in ROOMS or ROOMS.index(room) > ROOMS.index(source.room):
            yield f"{source.path}:{line}: {source.room} imports {name}, which is not before it"


def sharding_has_one_room(source: Source) -> Iterator[str]:
    if source.room == "pairs":
        return
    for node in ast.walk(source.tree):
        names = {getattr(node, "attr", None), getattr(node, "id", None)}
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {part for _, name in imported(source, iter([node])) for part in name.split(".")}
        for name in sorted(filter(None, names & SHARDING)):
            yield f"{source.path}:{node.lineno}: {name} belongs in pairs.py"


def no_jax_at_import(source: Source) -> Iterator[str]:
    aliases = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            aliases |= {(a.asname or a.name.split(".")[0]): (a.name if a.asname else a.name.split(".")[0]) for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            aliases |= {(a.asname or a.name): f"{node.module}.{a.name}" for a in node.names}
    for node in run_at_import(source.tree):
        if isinstance(node, ast.Call):
            root, _, rest = ast.unparse(node.func).partition(".")
            name = ".".join(filter(None, [aliases.get(root, root), rest]))
            if name.startswith("jax.") and not (name.startswith("jax.tree_util.") or name.removeprefix("jax.") in TRANSFORMS):
                yield f"{source.path}:{node.lineno}: {name} is called at import"


def no_asserts(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assert):
            yield f"{source.path}:{node.lineno}: assert; raise what says given, expected, remedy"


def public_things_have_docstrings(source: Source) -> Iterator[str]:
    """Modules, public functions and classes, and the public abstract methods that others implement."""
    if source.tree.body and not ast.get_docstring(source.tree):
        yield f"{source.path}:1: the module has no docstring"
    for outer in source.tree.body:
        if not isinstance(outer, ast.FunctionDef | ast.ClassDef):
            continue
        methods = [inner for inner in getattr(outer, "body", []) if "abstractmethod" in _decorators(inner)]
        for node in [outer, *methods]:
            private = outer.name.startswith("_") or re.match("_(?!_)", node.name)
            if not private and not ast.get_docstring(node) and "overload" not in _decorators(node):
                yield f"{source.path}:{node.lineno}: {node.name} has no docstring"


def _decorators(node: ast.AST) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in getattr(node, "decorator_list", [])}


def files_are_short(source: Source) -> Iterator[str]:
    lines = len(source.text.splitlines())
    if lines > MAX_LINES:
        yield f"{source.path}: {lines} lines; one concept a file, at most {MAX_LINES}"


def loading_runs_no_code(source: Source) -> Iterator[str]:
    for line, name in imported(source, ast.walk(source.tree)):
        if name.split(".")[0] in SERIALISERS:
            yield f"{source.path}:{line}: {name} can run code while loading"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            yield f"{source.path}:{node.value.lineno}: allow_pickle={ast.unparse(node.value)}"


def optional_packages_are_imported_at_use(source: Source) -> Iterator[str]:
    if source.room == "interop":
        return
    for line, name in imported(source, run_at_import(source.tree)):
        if name.split(".")[0] in OPTIONAL:
            yield f"{source.path}:{line}: {name} is optional; import it where it is used"


RULES: list[Callable[[Source], Iterator[str]]] = [
    imports_point_upward,
    sharding_has_one_room,
    no_jax_at_import,
    no_asserts,
    public_things_have_docstrings,
    files_are_short,
    loading_runs_no_code,
    optional_packages_are_imported_at_use,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_house(rule):
    sources = [Source(file.relative_to(PACKAGE).as_posix(), file.read_text("utf-8")) for file in sorted(PACKAGE.rglob("*.py"))]
    assert sources
    complaints = [complaint for source in sources for complaint in rule(source)]
    assert not complaints, "\n".join(complaints)


BAD = [
    (imports_point_upward, "stein.py", "from polystein.kernels import RBF"),
    (imports_point_upward, "stein.py", "import polystein.pairs"),
    (imports_point_upward, "kernels/rbf.py", "from ..methods import SVGD"),
    (imports_point_upward, "kernels/rbf.py", "from .. import methods"),
    (imports_point_upward, "kernels/rbf.py", "def f():\n    from polystein import run"),
    (imports_point_upward, "cli.py", "from polystein import KSD"),
    (imports_point_upward, "utils.py", ""),
    (sharding_has_one_room, "run.py", "from jax import shard_map"),
    (sharding_has_one_room, "run.py", "import jax.sharding"),
    (sharding_has_one_room, "run.py", "import jax\nf = lambda x: jax.sharding.Mesh(x)"),
    (no_jax_at_import, "run.py", "import jax.numpy as jnp\nZERO = jnp.zeros(())"),
    (no_jax_at_import, "run.py", "from jax.numpy import eye\nclass A:\n    x = [eye(2)]"),
    (no_jax_at_import, "run.py", "import jax\ndef f(key=jax.random.key(0)): ..."),
    (no_jax_at_import, "run.py", "import jax.numpy\nX = jax.numpy.ones(2)"),
    (no_asserts, "run.py", "def f(x):\n    assert x > 0"),
    (public_things_have_docstrings, "run.py", "'''A module.'''\ndef f(): ..."),
    (public_things_have_docstrings, "run.py", "'''A module.'''\nclass A:\n    x = 1"),
    (
        public_things_have_docstrings,
        "run.py",
        "'''A module.'''\nclass A:\n    'An A.'\n    @abstractmethod\n    def f(self): ...",
    ),
    (public_things_have_docstrings, "run.py", "x = 1"),
    (files_are_short, "run.py", "x = 1\n" * (MAX_LINES + 1)),
    (loading_runs_no_code, "data/load.py", "import pickle"),
    (loading_runs_no_code, "data/load.py", "from pickle import loads"),
    (loading_runs_no_code, "data/load.py", "np.load(f, allow_pickle=True)"),
    (optional_packages_are_imported_at_use, "report/figures.py", "import matplotlib.pyplot as plt"),
    (optional_packages_are_imported_at_use, "run.py", "try:\n    from torch import nn\nexcept ImportError: ..."),
]

GOOD = [
    (
        imports_point_upward,
        "kernels/rbf.py",
        "from .base import K\nfrom ..stein import Jet\nfrom polystein.numerics import root",
    ),
    (imports_point_upward, "__init__.py", "from polystein.cli import main"),
    (sharding_has_one_room, "pairs.py", "from jax.sharding import Mesh"),
    (
        no_jax_at_import,
        "run.py",
        "import jax\n@jax.jit\ndef f(x): return jax.numpy.sum(x)\ng = jax.vmap(lambda x: jax.numpy.abs(x))",
    ),
    (no_asserts, "run.py", "raise ValueError('assert')"),
    (public_things_have_docstrings, "run.py", "'''A module.'''\ndef _f(): ...\nclass A:\n    'An A.'\n    def f(self): ..."),
    (files_are_short, "run.py", "x = 1\n" * MAX_LINES),
    (loading_runs_no_code, "data/load.py", "np.load(f, allow_pickle=False)"),
    (optional_packages_are_imported_at_use, "report/figures.py", "def draw():\n    import matplotlib.pyplot as plt"),
    (optional_packages_are_imported_at_use, "run.py", "if TYPE_CHECKING:\n    import torch"),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_rule_fails_on_planted_fault(rule, path, text):
    assert list(rule(Source(path, text)))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_rule_passes_what_is_allowed(rule, path, text):
    assert not list(rule(Source(path, text)))


def test_every_rule_has_a_planted_fault():
    assert {rule for rule, _, _ in BAD} == {rule for rule, _, _ in GOOD} == set(RULES)


# Text that holds on one machine only: package indexes by address, folders from the root of a file system.
INDEX = re.compile(r"://[^\s\"'<>]*(?:pypi|pythonhosted|npmjs|/simple\b)|--(?:extra-)?index-url", re.IGNORECASE)
FOLDER = re.compile(r"(?<![\w./:}-])/(?:root|work|home|Users)/\w")


def local_text(text: str) -> list[str]:
    """What of a text would hold on one machine only."""
    return [match[0] for pattern in (INDEX, FOLDER) for match in pattern.finditer(text)]


@pytest.mark.parametrize("text", ["https:" + "//py" + "pi.org/x", "--index" + "-url x", "cd /ro" + "ot/x", "'/wo" + "rk/main'"])
def test_local_text_is_found(text):
    assert local_text(text)


@pytest.mark.parametrize(
    "text", ["../shared", "https://example.org/home/x", "/usr/bin/env", "src/work/x", "pip install polystein"]
)
def test_portable_text_is_let_through(text):
    assert not local_text(text)


def test_project_names_no_index_and_no_folder_of_one_machine():
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listing.returncode:
        pytest.skip("git lists no files here, so this is no checkout")
    found = {}
    for name in filter(None, listing.stdout.split("\0")):
        file = ROOT / name
        if file.is_file():
            found[name] = local_text(file.read_bytes().decode("utf-8", "ignore"))
    assert not {name: texts for name, texts in found.items() if texts}
