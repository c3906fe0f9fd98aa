"""The README tells what is there: its commands, its code, its links, its tree and the output it promises."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import baer_utils
from baer_utils.__main__ import parser
from baer_utils.backbones import open_backbone
from baer_utils.batch.book import find_notebooks, run_name
from baer_utils.batch.grids import read_grid
from baer_utils.batch.parameters import check_settings, split_setting
from baer_utils.benchmarks import load_pairs
from baer_utils.debias import fit_debias
from baer_utils.deployment import describe_condition, develop, fit_heads, freeze
from baer_utils.gates import select_head
from baer_utils.judging import judge_pairs
from baer_utils.protocols import BOOK_BANK
from baer_utils.store import open_store, seal
from tests.finished_book import finished_book

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = [ROOT / "README.md", ROOT / "notebooks" / "README.md", ROOT / ".github" / "CONTRIBUTING.md"]


def blocks(language: str) -> list[str]:
    """Fenced code of the README in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


SHELL = [line.partition("  #")[0].strip() for block in blocks("sh") for line in block.splitlines() if line.strip()]
COMMANDS = [found for line in SHELL for found in re.findall(r"python -m baer_utils[^;]*", line)]
MAKES = [line for line in SHELL if line.startswith("make ")]


def check_command(words: list[str]) -> None:
    """A command line of the module parses, and what it sets is known to the notebooks that are there."""
    args = parser().parse_args(words)
    if args.command == "book":
        check_settings(dict(split_setting(text) for text in args.set), find_notebooks())


def test_the_readme_shows_commands_and_all_of_them_are_checked():
    assert len(MAKES) >= 8 and len(COMMANDS) >= 4 and len(blocks("python")) == 1
    known = ("make ", "python -m baer_utils", "python -m pip install")
    assert all(line.startswith(known) for line in SHELL)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_python_command_of_the_readme_is_one_that_exists(command):
    check_command(shlex.split(command)[3:])


@pytest.mark.parametrize("line", MAKES)
def test_a_make_command_of_the_readme_is_one_that_exists_and_passes_its_settings_on(line):
    words = shlex.split(line)
    assert words[1] in TARGETS
    printed = subprocess.run(["make", "-n", *words[1:]], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    for call in re.findall(r"-m baer_utils (book.*)", printed):
        check_command(shlex.split(call))
        given = [word for word in words[2:] if not word.startswith("ONLY=")]
        assert sorted(shlex.split(call.partition("--set ")[2])) == sorted(given)


def test_the_grids_that_are_shown_are_grids(tmp_path):
    shown = [blocks("yaml")[0], re.search(r"```yaml\n(.*?)```", PAGES[1].read_text(encoding="utf-8"), re.S)[1]]
    for number, (text, runs) in enumerate(zip(shown, (4, 8), strict=True)):
        path = tmp_path / f"grid{number}.yml"
        path.write_text(text)
        assert len(read_grid(path).cells) == runs


def test_make_hands_on_any_text_as_it_was_typed():
    value = 'SOURCE=a b\'s "$x" `c` \\ *.csv'
    plain = {name: text for name, text in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "-n", "book", value]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, env=plain).stdout
    assert shlex.split(printed.splitlines()[-1].partition("--set ")[2]) == [value]


def test_make_names_every_target_in_its_help_and_in_the_readme():
    printed = subprocess.run(["make"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    for target in TARGETS - {"help", "judge"}:
        assert target in printed and f"make {target}" in README


def test_the_output_promised_for_make_book_is_what_a_run_prints():
    promised = blocks("text")[0].splitlines()
    printed = finished_book().printed.splitlines()
    defaults = {
        name: value for book in find_notebooks() for name, value in book.parameters.items() if name != "OUT_DIR"
    }
    place = f"outputs/{run_name(defaults)}"
    assert promised[0] == f"The book goes to {place}; open {place}/index.html to read it."
    notebooks = dict.fromkeys(tuple(line.split()[:2]) for line in printed[1:])  # slow ones print more than one line
    assert [tuple(line.split()[:2]) for line in promised[1:]] == list(notebooks)


def freeze_a_live_head(place: Path) -> None:
    """A head for the embedded judge itself, made as notebook 07 makes one, of the experts that direct's reads give."""
    experts = ("direct", "pride", "calibraeval")
    pairs, judge = load_pairs("starter_correctness", n_pairs=6), open_backbone("smollm2-135m")
    store = open_store(judge.name, "starter_correctness", n_pairs=6, root=place / "store")
    pairs = seal(pairs, store)
    runs, _ = judge_pairs(pairs, judge, ("direct",), store=store, progress=False)
    debias = fit_debias(runs, pairs)
    decision = select_head(develop(pairs, runs, experts, debias=debias))
    condition = describe_condition(store, experts, debias=debias)
    freeze(decision, fit_heads(pairs, runs, decision, condition), place / "outputs" / "mine" / "deployment")


@pytest.mark.filterwarnings("ignore:the frozen head has never met these categories")
def test_the_python_example_scores_new_pairs_with_a_frozen_head(tmp_path, monkeypatch, capsys):
    shown = {
        "question": ["What is 2 plus 3?", "Name a colour."],
        "ours": ["It is 5.", "Blue."],
        "theirs": ["6", "Dog."],
    }
    pd.DataFrame(shown).to_csv(tmp_path / "new_pairs.csv", index=False)
    freeze_a_live_head(tmp_path)
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(compile(blocks("python")[0], "README.md", "exec"), found)
    assert len(found["scores"]) == 2 and set(found["better"]) <= {*shown["ours"], *shown["theirs"]}
    assert "probability" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = [link for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


def test_both_tables_name_every_notebook_in_order():
    names = [book.name for book in find_notebooks()]
    for page in PAGES[:2]:
        linked = re.findall(r"\]\((?:notebooks/)?(\d\d_\w+)\.ipynb\)", page.read_text(encoding="utf-8"))
        assert linked[: len(names)] == names


def test_the_tree_names_what_is_there_and_every_module():
    tree = next(block for block in blocks("text") if block.startswith("notebooks/"))
    named = [re.split(r"  +", line.strip())[0] for line in tree.splitlines() if not line.startswith("          ")]
    modules = {name.strip("/ ") for line in named for name in line.split(",")} - {""}
    for line in tree.splitlines():
        if line and not line.startswith(" "):
            for name in re.split(r"\s{2,}", line)[:1] + (
                ["." + line.split("  .")[1].split()[0]] if "  ." in line else []
            ):
                assert (ROOT / name.strip("/")).exists() or name.strip("/") == "outputs", name
    there = {
        path.stem for path in (ROOT / "baer_utils").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert there - {"__init__", "__main__"} <= modules


def test_versions_agree_and_the_conda_environment_has_no_list_of_its_own():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"] == baer_utils.__version__
    assert citation["license"] == PROJECT["license"] == "Apache-2.0"
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    assert conda[-1] == {"pip": ["-e .[dev]"]} and "dev" in PROJECT["optional-dependencies"]
    assert all("==" in wanted for wanted in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]])


def test_every_number_that_had_to_be_measured_has_been_measured():
    assert README.count("TO MEASURE") == 0


def test_what_the_readme_says_of_the_judge_is_what_its_record_says():
    pairs = load_pairs("starter_correctness", n_pairs=200)
    runs, _ = judge_pairs(pairs, open_backbone("replay:smollm2-135m"), ("direct",), progress=False)
    reads = runs.pivot(index="pair_id", columns="view", values="log_odds")
    first = ((reads["ab"] > 0).mean() + (reads["ba"] < 0).mean()) / 2
    changed = (np.sign(reads["ab"]) != np.sign(reads["ba"])).mean()
    assert "the response shown first three times out of four" in README and abs(first - 3 / 4) < 0.05
    assert "on nine pairs of ten it changes its mind" in README and abs(changed - 9 / 10) < 0.05


def test_what_the_readme_says_is_recorded_is_recorded():
    said = "200 pairs of each of our own sets, those\nthat `SEED=0` takes"
    assert said in README and "if it is `SEED=1`, and up\nto `N_PAIRS=100` whichever it is" in README
    for name in ("starter_correctness", "starter_preference"):
        judge = open_backbone("replay:smollm2-135m")
        wanted = [(seed, 100) for seed in range(10)] + [(0, 200)] + [(1, 200)] * (name == "starter_correctness")
        for seed, n_pairs in wanted:
            pairs = load_pairs(name, seed=seed, n_pairs=n_pairs)
            assert all(judge.has(pair, protocol) for pair in pairs["pair_id"] for protocol in BOOK_BANK), (
                seed,
                n_pairs,
            )


def test_the_readme_has_its_parts_in_order_and_one_figure():
    parts = ["60 seconds", "The notebooks", "Other pairs, other sizes, grids", "What needs a GPU, and what does not"]
    parts += ["Your own pairs and judges", "What is where", "Tests", "Citations"]
    assert re.findall(r"^## (.*)$", README, re.M) == parts
    assert len(re.findall(r"^!\[.{20,}\]\(outputs/reference/", README, re.M)) == README.count("![") == 1


def test_typed_numbers_agree_with_each_other_and_with_what_they_are_typed_from():
    took = dict(re.findall(r"^\[\d+/13\] (\d\d)_\w+  (\d+) s$", blocks("text")[0], re.M))
    minutes = dict(re.findall(r"^\| \[(\d\d) · [^|]*\|[^|]*\| 1/(\d) \|", README, re.M))
    assert len(took) == len(minutes) == len(find_notebooks())
    assert {number: 4 if int(seconds) <= 15 else 2 for number, seconds in took.items()} == {
        number: int(part) for number, part in minutes.items()
    }
    whole = re.search(r"the book (\d+) min (\d+) s", README)
    assert abs(60 * int(whole[1]) + int(whole[2]) - sum(map(int, took.values()))) < 15
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in README
    assert "runs over ten splits" in README and parser().parse_args(["grid", "banks"]).seeds == 10
