"""A server on loopback that speaks the OpenAI protocol as vLLM does, answers with a real small model, and fails on cue.

What it says was written from answers of vLLM 0.32 (tests/server_proof.py asks the real one). `lacks` switches off what
other servers do not have; `faults` are played one after the other, each on one request.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

MODEL = "judge"


class OpenAIServer:
    """Serves a `TransformersBackbone`; use it as a context manager.

    Attributes
    ----------
    url : its address.
    requests : bodies of all POST requests, in order; headers : the headers of every request.
    faults : what happens instead of an answer, first in first out: a status, ``(status, headers, text)``, "close",
        "hang", "garbage", "half", "few" (a choice too few) or "shuffled".
    poison : requests for which this is true get status 500.
    """

    def __init__(self, judge, *, lacks: tuple[str, ...] = (), port: int = 0, root: str = "org/judge", models=(MODEL,),
                 context: int | None = 512):  # fmt: skip
        self.judge, self.lacks, self.root, self.models, self.context = judge, set(lacks), root, models, context
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.faults: list = []
        self.poison: Callable[[dict], bool] = lambda body: False
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        """Gone, as after a kill: its port refuses connections."""
        self._open.set()
        self._http.shutdown()
        self._http.server_close()

    def prompts(self) -> list:
        """Every prompt that was asked, in order, one by one."""
        return [row for body in self.requests for row in body.get("prompt", [body.get("messages")])]

    def _handler(server):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status: int, answer, headers: dict | None = None, cut: bool = False):
                data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if cut else data)
                if cut:
                    self.close_connection = True

            def do_GET(self):
                server.headers.append(dict(self.headers))
                if "models" in server.lacks:
                    return self.reply(404, {"detail": "Not Found"})
                extra = {"max_model_len": server.context} if server.context else {}
                models = [{"id": name, "object": "model", "root": server.root} | extra for name in server.models]
                return self.reply(200, {"object": "list", "data": models})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.headers.append(dict(self.headers))
                    server.requests.append(body)
                    fault = server.faults.pop(0) if server.faults else 500 if server.poison(body) else None
                if isinstance(fault, int):
                    return self.reply(fault, {"error": {"message": f"injected {fault}"}})
                if isinstance(fault, tuple):
                    return self.reply(fault[0], fault[2], fault[1])
                if fault == "close":
                    self.close_connection = True
                    return self.connection.close()
                if fault == "hang":
                    server._open.wait(30)
                    self.close_connection = True
                    return None
                if fault == "garbage":
                    return self.reply(200, "<html>busy</html>")
                with server._lock:
                    status, answer = server.answer(self.path, body)
                if fault == "few":
                    answer["choices"].pop()
                if fault == "shuffled":
                    answer["choices"].reverse()
                return self.reply(status, answer, cut=fault == "half")

        return Handler

    def answer(self, path: str, body: dict) -> tuple[int, dict]:
        """Status and answer to a request, from the model."""
        if path == "/v1/completions":
            rows, shape = body["prompt"], self._completion
        else:
            text = self.judge.tokenizer.apply_chat_template(
                body["messages"], tokenize=False, add_generation_prompt=True
            )
            rows, shape = [self.judge.tokenizer(text, add_special_tokens=False)["input_ids"]], self._chat
        longest = max(len(row) for row in rows) + body["max_tokens"]
        if self.context and longest > self.context:
            return 400, {"error": {"message": f"the context is {self.context} tokens, and this takes {longest}"}}
        choices = [{"index": n} | shape(row, body) for n, row in enumerate(rows)]
        usage = {"prompt_tokens": sum(map(len, rows)), "completion_tokens": sum(c.pop("written") for c in choices)}
        return 200, {"object": "text_completion", "choices": choices, "usage": usage}

    def _write(self, row: list[int], body: dict) -> tuple[list[int], str, list]:
        """Token ids with the end token, the finish reason, and the log-probabilities of every step."""
        ids, steps = [], []
        draw = torch.Generator().manual_seed(body.get("seed") or 0)
        for _ in range(body["max_tokens"]):
            with torch.inference_mode():
                logits = self.judge.model(torch.tensor([row + ids]), logits_to_keep=1).logits[0, -1].double()
            raw = logits.log_softmax(0)
            allowed = body.get("allowed_token_ids") if "allowed_token_ids" not in self.lacks else None
            if allowed:
                mask = torch.full_like(logits, -torch.inf)
                mask[allowed] = logits[allowed]
                logits = mask
            steps.append(logits.log_softmax(0) if "raw_logprobs" in self.lacks else raw)
            if body.get("temperature"):
                token = int(torch.multinomial((logits / body["temperature"]).softmax(0), 1, generator=draw))
            else:
                token = int(logits.argmax())
            ids.append(token)
            if token in self.judge._stops:
                return ids, "stop", steps
        return ids, "length", steps

    def _completion(self, row: list[int], body: dict) -> dict:
        ids, reason, steps = self._write(row, body)
        decode = self.judge.tokenizer.decode
        own = ids[-1] if reason == "stop" and ids[-1] != self.judge.tokenizer.eos_token_id else None
        text = decode(ids[:-1] if reason == "stop" else ids, skip_special_tokens=True)
        choice = {"text": text, "finish_reason": reason, "stop_reason": own, "written": len(ids)}
        if body.get("return_token_ids") and "return_token_ids" not in self.lacks:
            choice["token_ids"] = ids
        if "logprobs" in body and "logprobs" not in self.lacks:
            named = (lambda t: f"token_id:{t}") if "token_names" not in self.lacks else (lambda t: decode([t]))
            wanted = body.get("logprob_token_ids") if "logprob_token_ids" not in self.lacks else None
            likeliest = steps[0].topk(body["logprobs"]).indices.tolist()
            shown = {named(t): max(float(steps[0][t]), -9999.0) for t in [ids[0], *(wanted or likeliest)]}
            choice["logprobs"] = {
                "tokens": [named(ids[0])],
                "token_logprobs": [shown[named(ids[0])]],
                "top_logprobs": [shown],
            }
        if "prompt_logprobs" in body and "prompt_logprobs" not in self.lacks:
            with torch.inference_mode():
                before = self.judge.model(torch.tensor([row])).logits[0].log_softmax(1)
            choice["prompt_logprobs"] = [None] + [
                {str(token): {"logprob": float(before[n, token])}} for n, token in enumerate(row[1:])
            ]
        return choice

    def _chat(self, row: list[int], body: dict) -> dict:
        ids, reason, steps = self._write(row, body)
        decode = self.judge.tokenizer.decode
        choice = {"message": {"role": "assistant", "content": decode(ids, skip_special_tokens=True)},
                  "finish_reason": reason, "written": len(ids)}  # fmt: skip
        if body.get("logprobs") and "logprobs" not in self.lacks:
            likeliest = steps[0].topk(body["top_logprobs"]).indices.tolist()
            shown = [{"token": decode([t]), "logprob": float(steps[0][t])} for t in likeliest]
            said = {"token": decode(ids[:1]), "logprob": float(steps[0][ids[0]])}
            choice["logprobs"] = {"content": [said | {"top_logprobs": shown}]}
        return choice


def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
