"""A condition: everything that must not change between the freeze and the test.

A condition is a benchmark and a judge backbone (BAER section 2.3), with the words, budgets and categories under which
its answers were obtained. This file describes one; it knows nothing about labels, evidence or heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from types import SimpleNamespace

from baer_utils.debias import Debias, fitted_experts
from baer_utils.features import category_columns
from baer_utils.prompts import Segment
from baer_utils.protocols import PROTOCOLS, Settings, rehearse

CLIP = 1e-4
OWN_EXPERTS = ("deliberate",)  # BAER's own: evidence for the heads, no external baseline
RULES = {
    "orientation": "the response listed first upstream is a iff h(orient|benchmark|pair_id) < 0.5",
    "split": "h(seed|split|group_id) < 0.2 selection, < 0.6 calibration, else test",
    "hash": "h(x) = first 16 hex digits of sha256(x) / 2**64",
}


@dataclass(frozen=True)
class Condition:
    """What a frozen head was fitted under; a head meets new pairs only under the same condition.

    Attributes
    ----------
    benchmark, backbone, seed, n_pairs : as in the store.
    experts : K names, in the order of the feature columns.
    clip : probability at which log-odds are cut (Eq. 4a).
    settings : decoding budgets of the judge.
    prompt_versions, templates : expert -> version of its words; expert -> its first prompt with the pair left open.
        An imported judge has neither. After the fit also those of what other heads ask (`with_words`).
    categories : names of the category columns, in order.
    package : version of this package.
    debias : the fitted corrections behind `pride` and `calibraeval`; None for a bank without them.
    """

    benchmark: str
    backbone: str
    seed: int
    n_pairs: int
    experts: tuple[str, ...]
    clip: float
    settings: dict[str, object]
    prompt_versions: dict[str, str]
    templates: dict[str, str]
    categories: tuple[str, ...]
    package: str
    debias: Debias | None = field(default=None, repr=False)


def describe_condition(
    store,
    experts: Sequence[str],
    *,
    clip: float = CLIP,
    settings: Settings | None = None,
    debias: Debias | None = None,
) -> Condition:
    """The condition of a sealed store: its names, and the words, budgets and categories in force now.

    Parameters
    ----------
    store : a store whose pairs were sealed; categories are read from its pairs that are not in test, or are declared.
    experts : names of the stack's experts.
    clip : see `evidence.log_odds`.
    settings : decoding budgets that the runs were made with.
    debias : corrections fitted on the store's selection and calibration pairs (`fit_debias`); needed, and kept, only
        where `pride` or `calibraeval` is among the experts.

    Raises
    ------
    ValueError
        for a store without sealed pairs, for corrections that are needed and missing, or fitted on any other pair.
    """
    if store.pairs is None:
        raise ValueError("a condition needs sealed pairs; this store has none. Call store.seal(pairs, store) first.")
    if fitted_experts(experts, debias):
        _refuse_other_pairs(debias, store.pairs)
    else:
        debias = None
    columns = category_columns(store.pairs, store.benchmark)
    return Condition(
        benchmark=store.benchmark,
        backbone=store.backbone,
        seed=store.seed,
        n_pairs=store.n_pairs,
        experts=tuple(experts),
        clip=float(clip),
        settings=asdict(settings or Settings()),
        prompt_versions=prompt_versions(experts),
        templates=rendered_templates(experts, settings or Settings()),
        categories=tuple(columns.columns),
        package=version("baer-utils"),
        debias=debias,
    )


def _refuse_other_pairs(debias: Debias, pairs) -> None:
    maps = [fitted.pairs for fitted in (debias.expert, debias.three_prompts) if fitted is not None]
    development = set(pairs.loc[pairs["split"] != "test", "pair_id"])
    others = sorted(set().union(debias.prior_pairs, *maps) - development)
    if others:
        raise ValueError(
            "corrections must be fitted on selection and calibration pairs of their own condition; these were fitted "
            f"on {len(others)} others, first {others[0]}. Fit them again: fit_debias(runs, pairs)."
        )


def prompt_versions(experts: Sequence[str]) -> dict[str, str]:
    """Expert -> versions of the words of its stages, joined by " > ", for the experts that this package can ask."""
    asked = {
        name: [call.prompt.version for call in rehearse(name, Settings())] for name in experts if name in PROTOCOLS
    }
    return {name: " > ".join(dict.fromkeys(versions)) for name, versions in asked.items()}


def rendered_templates(experts: Sequence[str], settings: Settings) -> dict[str, str]:
    """Expert -> the texts of its different prompts, with the pair's own words and earlier answers left open."""
    names = ("pair_id", "instruction", "response_a", "response_b", "subset", "task_type")
    blank = SimpleNamespace(**{name: "{" + name + "}" for name in names})
    texts = {}
    for name in experts:
        if name in PROTOCOLS:
            asked = [call.prompt for call in rehearse(name, settings, blank) if call.prompt.key.view not in ("ba", "b")]
            shown = ["".join(map(_open, p.segments)) + p.stub for p in asked]
            texts[name] = "\n\n----\n\n".join(dict.fromkeys(shown))
    return texts


def with_words(condition: Condition, protocols: Sequence[str]) -> Condition:
    """The condition with the words of further protocols: the router's extra candidates, reference verification."""
    if not protocols:
        return condition
    versions = condition.prompt_versions | prompt_versions(protocols)
    templates = condition.templates | rendered_templates(protocols, Settings(**condition.settings))
    return replace(condition, prompt_versions=versions, templates=templates)


def _open(segment: Segment) -> str:
    """A segment's text; what a rehearsal put in the place of a generated text is left open too."""
    return "{generated}" if not segment.trusted and set(segment.text.split()) == {"a"} else segment.text


def baselines_of(experts: Sequence[str]) -> tuple[str, ...]:
    """The experts that are also external baselines: all but BAER's own."""
    return tuple(name for name in experts if name not in OWN_EXPERTS)


def feature_names(condition: Condition) -> list[str]:
    """Names of the columns of the stack's features, in order."""
    raw, shrunk = ([f"{kind} {name}" for name in condition.experts] for kind in ("z", "shrunk z"))
    return [*raw, *shrunk, *(f"mean z in {name}" for name in condition.categories)]
