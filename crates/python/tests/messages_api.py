"""A loopback server that plays the Messages API: it hands out the scripted tool calls turn by
turn and checks how each request pairs their results."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, List, Optional
from pathlib import Path
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSION = Path(__file__).parents[2] / "testing" / "session.json"
PNG = b"\x89PNG\r\n\x1a\n and what follows it"


def _expanded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"repeat", "times"}:
            return value["repeat"] * value["times"]
        return {name: _expanded(below) for name, below in value.items()}
    return value


def session() -> List[List[Dict[str, Any]]]:
    """The turns of the shared session."""
    turns = json.loads(SESSION.read_text(encoding="utf-8"))["turns"]
    return [[{**step, "input": _expanded(step["input"])} for step in turn] for turn in turns]


def assert_result(step: Dict[str, Any], result: Dict[str, Any]) -> None:
    """That the model got what the session says."""
    is_error = "error" in step or "starts_error" in step
    assert bool(result.get("is_error", False)) == is_error, (step, result)
    content = result["content"]
    if "image" in step:
        (block,) = content
        assert block["type"] == "image" and block["source"]["media_type"] == step["image"], result
        return
    if isinstance(content, list):
        (block,) = content
        content = block["text"]
    exact = step.get("result", step.get("error"))
    if exact is not None:
        assert content == exact
    assert content.startswith(step.get("starts", step.get("starts_error", "")))
    assert content.endswith(step.get("ends", ""))


class MessagesApi:
    """Plays ``turns``, then says it is done. What it saw is in ``requests`` and ``results``."""

    def __init__(self, turns: List[List[Dict[str, Any]]]) -> None:
        self.turns = turns
        self.requests: List[Dict[str, Any]] = []
        self.results: List[Dict[str, Any]] = []
        self.faults: List[str] = []
        self._at = 0
        self._lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with api._lock:
                    try:
                        message = api._answer(request)
                    except AssertionError as fault:
                        api.faults.append(f"{fault}")
                        self._send(400, "application/json", b'{"type":"error","error":{"type":"x","message":"fault"}}')
                        return
                if request.get("stream"):
                    body = "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in _events(message))
                    self._send(200, "text/event-stream", body.encode())
                else:
                    self._send(200, "application/json", json.dumps(message).encode())

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> MessagesApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.requests.append(request)
        if request.get("compaction") is not None:
            block = {"type": "compaction", "content": "A summary.", "encrypted_content": None}
            return self._message([block], "compaction")
        thread: Optional[Dict[str, Any]] = request.get("thread")
        continues = thread is not None and thread["type"] == "continue"
        if continues:
            assert "tools" not in request, "a thread that goes on brings its tools"
            assert len(request["messages"]) == 1, "a thread that goes on brings only what is new"
            assert thread is not None and thread["previous_message_id"] == f"msg_{len(self.requests) - 1}"
        else:
            kinds = [tool.get("type") for tool in request["tools"]]
            assert "memory_20250818" in kinds, kinds
        if self._at > 0:
            asked = self.turns[self._at - 1]
            blocks = request["messages"][-1]["content"]
            results = [block for block in blocks if block["type"] == "tool_result"]
            ids = [f"toolu_{self._at - 1}_{at}" for at in range(len(asked))]
            assert [result["tool_use_id"] for result in results] == ids, "results that fit no call"
            self.results.extend(results)
        if self._at == len(self.turns):
            return self._message([{"type": "text", "text": "Done."}], "end_turn")
        turn = self.turns[self._at]
        blocks = [
            {"type": "tool_use", "id": f"toolu_{self._at}_{at}", "name": "memory", "input": step["input"]}
            for at, step in enumerate(turn)
        ]
        self._at += 1
        return self._message(blocks, "tool_use")

    def _message(self, content: List[Dict[str, Any]], stop_reason: str) -> Dict[str, Any]:
        return {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def check(self) -> None:
        """That the whole script ran, and each result was as the session says."""
        assert self.faults == []
        steps = [step for turn in self.turns for step in turn]
        assert len(self.results) == len(steps)
        for step, result in zip(steps, self.results):
            assert_result(step, result)


def _events(message: Dict[str, Any]) -> Any:
    start = {**message, "content": [], "stop_reason": None}
    yield "message_start", {"type": "message_start", "message": start}
    for at, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            opened: Dict[str, Any] = {**block, "input": {}}
            text = json.dumps(block["input"])
            middle = len(text) // 2
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:middle], text[middle:])]
        else:
            opened = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": block["text"]}]
        yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": opened}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": at}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield "message_stop", {"type": "message_stop"}
