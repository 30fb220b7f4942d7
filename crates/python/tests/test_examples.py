"""The examples, against a scripted Messages API."""

from __future__ import annotations

import os
import sys
import subprocess
from typing import Any, Dict, List
from pathlib import Path

import pytest

from strongroom import Store

from .messages_api import MessagesApi

EXAMPLES = Path(__file__).parents[3] / "examples"

TURNS: List[List[Dict[str, Any]]] = [
    [
        {
            "input": {"command": "create", "path": "/memories/ada.md", "file_text": "Likes tea\n"},
            "result": "File created successfully at: /memories/ada.md",
        },
        {"input": {"command": "view", "path": "/memories/none.md"}, "starts_error": "The path"},
    ],
    [{"input": {"command": "view", "path": "/memories/ada.md"}, "ends": "\tLikes tea"}],
]


def programs() -> List[Any]:
    found = [pytest.param([sys.executable, str(EXAMPLES / "agent.py"), "--user"], id="python")]
    rust = Path(os.environ.get("STRONGROOM_BIN", "/none")).parent / "examples" / "tool_loop"
    if rust.exists():
        found.append(pytest.param([str(rust)], id="rust"))
    return found


@pytest.mark.parametrize("program", programs())
@pytest.mark.parametrize("edit", ["clear_tool_uses_20250919", "compact_20260112"])
def test_an_agent_runs_to_its_end(tmp_path: Path, program: List[str], edit: str) -> None:
    compact = ["--compact"] if edit.startswith("compact") else []
    words = [program[0], *compact, "ada"] if len(program) == 1 else [*program, "ada", *compact]
    with MessagesApi(TURNS) as api:
        done = subprocess.run(
            [*words, "Who am I?"],
            cwd=tmp_path,
            env={**os.environ, "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "none"},
            capture_output=True,
            text=True,
        )
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    api.check()
    (sent,) = api.requests[0]["context_management"]["edits"]
    assert sent["type"] == edit
    with Store(tmp_path / "memory", key_file=tmp_path / "memory.key") as store:
        seen = store.tenant("clinic/ada").execute(TURNS[1][0]["input"])
        assert str(seen.content).endswith("\tLikes tea")
