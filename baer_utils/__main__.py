"""The command line, `python -m baer_utils book | judge | grid | bench | fetch`: reads arguments, calls, prints.

Nothing heavy is imported before a command is known, so `--help` answers at once. Bad input ends as one line on standard
error with exit code 2; work that was begun and failed ends with exit code 1; Ctrl-C with 130.
"""

from __future__ import annotations

import argparse
import os
import sys


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = argparse.ArgumentParser(prog="python -m baer_utils", description="A judge book that adapts its evidence.")
    commands = top.add_subparsers(dest="command", required=True)

    book = commands.add_parser("book", help="run the notebooks in order, or go on where an earlier run stopped")
    book.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="change parameters of the notebooks"
    )
    book.add_argument("--out", help="folder of the run (default: outputs/<name made from the parameters>)")
    book.add_argument("--only", nargs="+", default=[], metavar="NN", help="run only these notebooks")
    book.set_defaults(run=run_book)

    grid = commands.add_parser("grid", help="run many settings, each in a process of its own").add_subparsers(
        dest="what", required=True
    )
    of_books = grid.add_parser("book", help="the notebooks over conditions x seeds x parameters")
    of_books.add_argument("file", help="YAML file that says what is run (notebooks/README.md)")
    of_books.add_argument("--dry-run", action="store_true", help="list the runs, and run nothing")
    of_books.set_defaults(run=run_grid_of_books)

    banks = grid.add_parser("banks", help="the whole method over judges that others have run, on LLMBar and JudgeBench")
    banks.add_argument("--llmbar", help="folder or archive of LLMBar with its judges' outputs")
    banks.add_argument("--judgebench", help="folder of JudgeBench with data and outputs")
    banks.add_argument("--verdicts", help="long table of judges on JudgeBench, in the place of its outputs")
    banks.add_argument("--seeds", type=int, default=10, help="number of split seeds, from 0 (default: 10)")
    banks.add_argument(
        "--heads", nargs="+", help="heads to evaluate beside the stack; the router takes most of the time"
    )
    banks.add_argument("--out", default="outputs/banks", help="folder of the results; a stopped grid goes on from it")
    banks.set_defaults(run=run_grid)

    exercises = commands.add_parser("exercises", help="copies of the notebooks with the solutions blanked")
    exercises.add_argument("--out", default="outputs/exercises", help="their folder (default: outputs/exercises)")
    exercises.set_defaults(run=write_exercises)

    reference = commands.add_parser("reference", help="run the book into outputs/reference, for reading and comparing")
    reference.set_defaults(run=make_reference)

    fetch = commands.add_parser("fetch", help="install, verify and convert the embedded judge, once")
    fetch.set_defaults(run=fetch_judge)

    judge = commands.add_parser("judge", help="judge pairs into the store and print what it took")
    judge.add_argument("--benchmark", default="starter_correctness", help="a name that load_pairs knows")
    judge.add_argument("--source", help="folder, file or archive of the pairs, where the benchmark needs one")
    judge.add_argument("--backbone", default="smollm2-135m", help="the judge, as the parameter BACKBONE of a notebook")
    judge.add_argument("--n-pairs", type=int, default=0, help="number of pairs; 0, the default, means all")
    judge.add_argument("--seed", type=int, default=0, help="seed of the split into selection, calibration and test")
    judge.add_argument("--experts", nargs="+", default=[], metavar="NAME", help="protocols (default: the book's)")
    judge.add_argument(
        "--dry-run", action="store_true", help="print the calls and tokens it would take, and ask nothing"
    )
    judge.set_defaults(run=judge_pairs)

    bench = commands.add_parser("bench", help="measure the judge against plain transformers and against peers")
    bench.add_argument("what", choices=["judge"], help="what is measured")
    bench.add_argument("--pairings", type=int, default=5, help="how often the two sides are timed (default: 5)")
    bench.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these sections (all)")
    bench.set_defaults(run=bench_judge)
    return top


def run_book(args: argparse.Namespace) -> None:
    """`book`: run the notebooks."""
    from baer_utils.batch import book, parameters

    settings = dict(parameters.split_setting(text) for text in args.set)
    book.run_book(settings, out=args.out, only=tuple(args.only))


def run_grid_of_books(args: argparse.Namespace) -> None:
    """`grid book`: run the notebooks many times over, or say which runs that would be."""
    from baer_utils.batch.grid_running import run_grid
    from baer_utils.batch.grids import read_grid

    grid = read_grid(args.file)
    if args.dry_run:
        print(grid)
        return
    failed = run_grid(grid)
    if failed:
        raise RuntimeError(f"{failed} of {len(grid.cells)} runs failed; the same command tries them again.")


def write_exercises(args: argparse.Namespace) -> None:
    """`exercises`: write the copies, and say which were there already."""
    from baer_utils.batch.exercises import write_exercises
    from baer_utils.reports import repository_path

    written = write_exercises(repository_path(args.out))
    blanked = sum(written.values())
    print(
        f"{len(written)} notebooks with {blanked} blanked solutions were written to {args.out}; any copy "
        "that was there is left as it was."
    )


def make_reference(_: argparse.Namespace) -> None:
    """`reference`: the executed copy of the book that is checked in, and its small results."""
    from baer_utils.batch.reference import make_reference

    print(make_reference())


def fetch_judge(_: argparse.Namespace) -> None:
    """`fetch`: have the embedded judge on this machine."""
    from baer_utils.backbones.embedded import NAME, ensure_model

    ensure_model()
    print(f"The embedded judge {NAME} is ready.")


def judge_pairs(args: argparse.Namespace) -> None:
    """`judge`: fill the store for one benchmark and judge, or say what that would take."""
    from baer_utils.backbones import open_backbone
    from baer_utils.benchmarks import load_pairs
    from baer_utils.debias import protocols_for
    from baer_utils.judging import judge_pairs
    from baer_utils.protocols import BOOK_BANK, PROTOCOLS
    from baer_utils.store import open_store, seal

    experts = protocols_for(args.experts or BOOK_BANK)
    unknown = [name for name in experts if name not in PROTOCOLS]
    if unknown:
        raise ValueError(f"an expert must be one of {', '.join(PROTOCOLS)}; {', '.join(unknown)} is not.")
    pairs = load_pairs(args.benchmark, args.source, seed=args.seed, n_pairs=args.n_pairs)
    backbone = open_backbone(args.backbone)
    if args.dry_run:
        print(planned(pairs, backbone, experts))
        return
    store = open_store(backbone.name, args.benchmark, seed=args.seed, n_pairs=args.n_pairs)
    pairs = seal(pairs, store)
    _, report = judge_pairs(pairs, backbone, experts, store=store)
    print(report)


def planned(pairs, backbone, experts: tuple[str, ...]) -> str:
    """What judging would take, as a table and two sentences."""
    from baer_utils.costs import dry_run
    from baer_utils.judging.planning import ResponseLimit
    from baer_utils.protocols import Settings

    settings = Settings()
    table = dry_run(pairs, backbone, experts, settings, cut=ResponseLimit(backbone, experts, settings).cut)
    return (
        f"{len(pairs):,} pairs under {backbone.name}; nothing was asked.\n"
        f"{table.map('{:,.0f}'.format).to_string()}\n"
        "These are separate prompts with every text as long as its budget allows: what calls share, and what the store "
        f"has, comes off. {table.attrs['unfit']:,} pairs do not fit the context and are left out."
    )


def run_grid(args: argparse.Namespace) -> None:
    """`grid banks`: every condition of imported judges under every seed, then Table 1."""
    from baer_utils.deployment import banks, printing
    from baer_utils.gates import HEADS
    from baer_utils.reports import repository_path
    from baer_utils.selective import rendered_abstention

    unknown = [head for head in args.heads or () if head not in HEADS]
    if unknown:
        raise ValueError(f"a head must be one of {', '.join(HEADS)}; {', '.join(unknown)} is not.")
    if not (args.llmbar or args.judgebench) or args.seeds < 1 or (args.verdicts and not args.judgebench):
        raise ValueError("grid banks needs --llmbar or --judgebench (which --verdicts goes with), and --seeds above 0.")
    conditions = banks.llmbar_banks(args.llmbar) if args.llmbar else []
    if args.judgebench:
        conditions.append(banks.judgebench_bank(args.judgebench, args.verdicts))
    folder, figures = repository_path(args.out), []
    for one in banks.run_banks(conditions, range(args.seeds), folder, args.heads or HEADS):
        figures.append(one)
        deployed, best = one["accuracy"]["deployed"], one["accuracy"][f"best single ({one['best_single']})"]
        print(f"{one['bank']}, seed {one['seed']}: {one['head']} {deployed:.1%}, best single {best:.1%}", flush=True)
    text = f"{printing.rendered(figures)}\n\n{rendered_abstention(figures)}"
    (folder / "table.txt").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}")


def bench_judge(args: argparse.Namespace) -> None:
    """`bench judge`: measure, print, and keep the figures in outputs/reference/bench.json."""
    from baer_utils.bench.judge import bench_judge

    if not bench_judge(args.pairings, tuple(args.only)):
        raise RuntimeError("at least one promise does not hold on this machine; the figures above say which.")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = parser().parse_args(arguments)
    if not sys.stderr.isatty():  # no bars of other libraries in logs
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        args.run(args)
    except (ValueError, OSError) as error:
        print(f"{args.command}: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"{args.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{args.command}: stopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
