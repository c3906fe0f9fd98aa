"""The two corrections as experts: fitted on the pairs outside the test, frozen, applied to any run table.

Neither costs a call: the rows of `pride` and `calibraeval` are direct judging's reads, read again. This file looks at
splits and never at labels; which runs exist, and where they are kept, is not its business.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd

from baer_utils.debias.calibraeval import EPOCHS, LEARNING_RATE, IncreasingMap, fit_map
from baer_utils.debias.objective import EXPERT, THREE_PROMPTS, Orbit
from baer_utils.debias.pride import item_prior, mean_prior, prior_sample, subtract_prior
from baer_utils.debias.reads import direct_reads, label_log_odds, label_reads
from baer_utils.prompts import LABEL_SIGN

UNPAID = {"prompt_tokens": 0, "cached_tokens": 0, "new_tokens": 0, "seconds": 0.0}


@dataclass(frozen=True)
class Debias:
    """Both corrections of one condition, fitted; they no longer change.

    Attributes
    ----------
    prior : PriDe's probability of the label A.
    prior_pairs : ids of the pairs it was estimated on, sorted.
    expert : CalibraEval's map for the expert, fitted on the views ab and ba, so that exchanging responses changes
        nothing in it.
    three_prompts : CalibraEval's own map for the native baseline, fitted on ab, ba_BA and ba; None where no pair had
        been asked in ba_BA.
    mode, epochs, learning_rate : how the maps were fitted; the last two are 0 in mode ``ecdf``.
    """

    prior: float
    prior_pairs: tuple[str, ...] = field(repr=False)
    expert: IncreasingMap = field(repr=False)
    three_prompts: IncreasingMap | None = field(repr=False)
    mode: str
    epochs: int
    learning_rate: float

    def apply(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Rows of `pride` and `calibraeval` for every direct read of a run table, in the canonical frame.

        Returns
        -------
        run table: first all rows of `pride`, then of `calibraeval`, in the order of the direct reads; views ab and ba,
        no tokens and no seconds. Backbone, label mass, prompt hash and text are the direct read's, and so is the
        status, but for ok and tie, which follow the new value. A read that is missing or failed stays without a value.
        """
        reads = direct_reads(runs)
        label, sign = label_log_odds(reads), reads["view"].map(LABEL_SIGN).to_numpy(float)
        corrected = {"pride": subtract_prior(label, self.prior), "calibraeval": self.expert.log_odds(label)}
        tables = []
        for name, value in corrected.items():
            answered = reads["status"].where(~reads["status"].isin(["ok", "tie"]), np.where(value == 0, "tie", "ok"))
            tables.append(reads.assign(protocol=name, log_odds=sign * value, status=answered, **UNPAID))
        return pd.concat(tables, ignore_index=True)

    def to_json(self) -> str:
        """The parameters as JSON text with sorted keys; floats in their shortest exact form."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Debias:
        """The same parameters, to the last bit, from the text of `to_json`."""
        content = json.loads(text)
        for name in ("expert", "three_prompts"):
            if content[name] is not None:
                content[name] = IncreasingMap(**{key: tuple(numbers) for key, numbers in content[name].items()})
        return cls(**content | {"prior_pairs": tuple(content["prior_pairs"])})


def fit_debias(
    runs: pd.DataFrame,
    pairs: pd.DataFrame,
    mode: str = "ecdf",
    *,
    epochs: int = EPOCHS,
    learning_rate: float = LEARNING_RATE,
) -> Debias:
    """Fit PriDe's prior and CalibraEval's maps on the selection and calibration pairs, without labels.

    Parameters
    ----------
    runs : run table of one backbone; test rows are not looked at.
    pairs : pair table. The prior is estimated on a hash sample of its non-test pairs that were read in both orders, see
        `pride.prior_sample`; the maps on all of them.
    mode, epochs, learning_rate : see `calibraeval.fit_map`.

    Raises
    ------
    ValueError
        where no non-test pair was read in both orders, or the run table holds two backbones.
    """
    kept, reads = _development_reads(runs, pairs, EXPERT)
    if not kept:
        raise ValueError(
            "PriDe and CalibraEval are fitted on selection and calibration pairs that `direct` read in both orders; "
            f"of {int((pairs['split'] != 'test').sum())} such pairs none was. Judge them with `direct` first, or apply "
            "a fitted Debias."
        )
    how = {"mode": mode, "epochs": epochs, "learning_rate": learning_rate}
    sample = prior_sample(kept)
    prior = mean_prior(item_prior(*reads[pd.Index(kept).get_indexer(sample)].T))
    expert = fit_map(reads, EXPERT, pairs=kept, **how)
    three_prompts = fit_three_prompts(runs, pairs, **how)
    kept_how = how if mode == "optimised" else how | {"epochs": 0, "learning_rate": 0.0}
    return Debias(prior, tuple(sorted(sample)), expert, three_prompts, **kept_how)


def fit_three_prompts(
    runs: pd.DataFrame,
    pairs: pd.DataFrame,
    mode: str = "ecdf",
    *,
    epochs: int = EPOCHS,
    learning_rate: float = LEARNING_RATE,
) -> IncreasingMap | None:
    """The map of CalibraEval as an external baseline, fitted on prompts 1A, 2A and 2B of the non-test pairs.

    Returns
    -------
    IncreasingMap, or None where no non-test pair was read in all three views.
    """
    kept, reads = _development_reads(runs, pairs, THREE_PROMPTS)
    how = {"mode": mode, "epochs": epochs, "learning_rate": learning_rate}
    return fit_map(reads, THREE_PROMPTS, pairs=kept, **how) if kept else None


def debiased_runs(runs: pd.DataFrame, pairs: pd.DataFrame, mode: str = "ecdf") -> pd.DataFrame:
    """Rows of `pride` and `calibraeval` for all direct reads of a run table, fitted on its non-test pairs.

    `fit_debias`, then `Debias.apply`: fit once and keep the Debias where new pairs are to be corrected alike.
    """
    return fit_debias(runs, pairs, mode).apply(runs)


def _development_reads(runs: pd.DataFrame, pairs: pd.DataFrame, orbit: Orbit) -> tuple[list[str], np.ndarray]:
    """Ids of the non-test pairs that were read in every view of an orbit, and their reads of the label A."""
    ids = sorted(pairs.loc[pairs["split"] != "test", "pair_id"])
    reads = label_reads(runs, ids, orbit.views)
    whole = ~np.isnan(reads).any(axis=1)
    return [name for name, keep in zip(ids, whole, strict=True) if keep], reads[whole]
