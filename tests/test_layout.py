"""The shape of the repository: order of modules, one function per equation, what no file may hold."""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "baer_utils"
ORDER = (
    "presence", "records", "scores", "metrics", "benchmarks", "importers", "prompts", "backbones", "protocols",
    "debias", "store", "costs", "judging", "evidence", "features", "stacking", "routing", "verification", "screening",
    "gates", "deployment", "selective", "calibrators", "roles", "panels", "juries", "regimes", "early_exit",
    "reports", "plots", "widgets", "shards", "bench", "batch", "__main__",
)  # fmt: skip
EQUATIONS = {
    "scores": ["BAER Eq. 1a", "BAER Eq. 1b", "BAER Eq. 2"],
    "evidence": ["BAER Eq. 3a", "BAER Eq. 3b", "BAER Eq. 4a", "BAER Eq. 4b"],
    "features": ["BAER Eq. 5"],
    "stacking": ["BAER Eq. 6a", "BAER Eq. 6b"],
    "routing": ["BAER Eq. 7a", "BAER Eq. 7b", "BAER Eq. 7c"],
    "verification": ["BAER Eq. 8", "BAER Eq. 9a", "BAER Eq. 9b"],
    "deployment": ["BAER Eq. 10"],
    "metrics": ["BAER Eq. 11"],
    "roles": ["Panels R1", "Panels R2", "Panels R3", "Panels R4a", "Panels R4b", "Panels R5", "Panels R6"],
}
TAG = re.compile(r"\((BAER Eq\. \w+|Panels R\w+)\)\.?$")
MAY_IMPORT_TORCH = ("backbones", "shards", "bench")
LONGEST_FILE = 260
FILES = sorted(PACKAGE.rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def module_of(path: Path) -> str:
    """Name in the order: the package a file belongs to, or the file itself."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Dotted names under baer_utils that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.startswith("baer_utils.")}


def public(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes of a file that others may use, and the methods of these classes."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    top = [node for node in tree.body if isinstance(node, kinds)]
    inner = [node for owner in top if isinstance(owner, ast.ClassDef) for node in owner.body if isinstance(node, kinds)]
    owners = {id(node): owner for owner in top if isinstance(owner, ast.ClassDef) for node in owner.body}
    hidden = {owner.name for owner in top if owner.name.startswith("_")}
    return [
        node
        for node in top + inner
        if not node.name.startswith("_") and getattr(owners.get(id(node)), "name", "") not in hidden
    ]


def test_every_module_has_its_place_in_the_order():
    assert len(FILES) > 20
    unknown = {module_of(path) for path in FILES} - {*ORDER, "__init__"}
    assert not unknown, f"give {sorted(unknown)} a place in ORDER, or another home"


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_imports_flow_down(path):
    own = module_of(path)
    if own == "__init__":
        assert not imported(path), "baer_utils/__init__.py re-exports nothing"
        return
    above = {*ORDER[: ORDER.index(own)], own}
    wrong = {name for name in imported(path) if name.split(".")[1] in {*ORDER, "__init__"} - above}
    assert not wrong, f"{dotted(path)} may import only from names above {own} in the order; it imports {sorted(wrong)}"


def test_files_of_one_package_import_each_other_in_one_direction():
    names = {dotted(path) for path in FILES}
    edges = {dotted(path): (imported(path) & names) - {dotted(path)} for path in FILES}

    def reach(start: str) -> set[str]:
        seen, todo = set(), [*edges[start]]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += edges[name]
        return seen

    assert not [name for name in names if name in reach(name)]


def test_each_equation_has_exactly_one_function():
    found: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                tag = TAG.search((ast.get_docstring(node) or "").partition("\n")[0])
                if tag:
                    found.setdefault(tag[1], []).append(module_of(path))
    present = {module_of(path) for path in FILES}
    wanted = {tag: [module] for module, tags in EQUATIONS.items() if module in present for tag in tags}
    assert found == wanted


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_a_file_is_short_says_what_it_does_and_documents_what_is_public(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) <= LONGEST_FILE, "this is two things"
    assert ast.get_docstring(tree), "a module begins with a paragraph: what it does, what it refuses to know"
    bare = [f"{node.name} (line {node.lineno})" for node in public(tree) if not ast.get_docstring(node)]
    assert not bare, f"{dotted(path)}: without a docstring: {', '.join(bare)}"


def test_torch_is_imported_only_where_judging_happens():
    names = [dotted(p) for p in FILES if module_of(p) not in (*MAY_IMPORT_TORCH, "__main__")]
    program = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
    program += "print(*{'torch', 'transformers'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_no_checked_in_file_names_a_place_on_somebodys_machine():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode:
        pytest.skip("this folder is no git checkout, so what is checked in is unknown")
    place = re.compile(
        "|".join("/" + name + "/" for name in ("work", "root", r"home/\w+", r"Users/\w+")) + r"|[A-Z]:\\Users"
    )
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            text = path.read_bytes().decode("utf-8", errors="ignore")
            found += [f"{name}: {hit[0]}" for hit in itertools.islice(place.finditer(text), 1)]
    assert not found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_checked_in_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    ran = [number for number, cell in enumerate(cells) if cell.get("outputs") or cell.get("execution_count")]
    assert not ran, f"{path.name} holds outputs in cells {ran}; clear them before checking it in"
