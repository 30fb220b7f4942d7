"""The store without any SDK."""

from __future__ import annotations

import sys
import json
import base64
import pickle
import subprocess
from typing import Any, Dict
from pathlib import Path

import pytest

import strongroom
from strongroom import Store, StrongroomError

from .messages_api import PNG

VIEW = {"command": "view", "path": "/memories"}


def test_a_store_needs_no_anthropic_package(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["anthropic"] = None
import strongroom
with strongroom.Store("s", key_file="k", create=True) as store:
    answer = store.tenant("a").execute({"command": "create", "path": "/memories/a.md", "file_text": "x\\n"})
    print(answer.content)
try:
    strongroom.StrongroomMemoryTool
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "File created successfully at: /memories/a.md",
        "StrongroomMemoryTool needs the anthropic package: pip install 'strongroom[anthropic]'",
    ]
    assert "Keep a copy elsewhere" in done.stderr


def test_answers_are_tool_results(tmp_path: Path) -> None:
    with Store(tmp_path / "s", key_file=tmp_path / "k", create=True) as store:
        memory = store.tenant("clinic/ada", actor="nurse", session="s-1")
        block = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": VIEW}
        assert memory.execute(json.dumps(block)).to_tool_result()["tool_use_id"] == "toolu_1"
        missing = memory.execute({"command": "view", "path": "/memories/a"})
        assert missing.to_tool_result("toolu_2") == {
            "type": "tool_result",
            "tool_use_id": "toolu_2",
            "content": "The path /memories/a does not exist. Please provide a valid path.",
            "is_error": True,
        }
        assert missing.failure is None
        assert memory.put_bytes("/memories/p.png", PNG).content == "File created successfully at: /memories/p.png"
        (image,) = memory.execute({"command": "view", "path": "/memories/p.png"}).content
        assert image["type"] == "image"  # type: ignore[index]
        assert base64.b64decode(image["source"]["data"]) == PNG  # type: ignore[index]
        assert memory.put_bytes("/memories/q.png", b"no image, \xff").is_error
        assert memory.execute('{"command":"view","path":"\\ud800"}').is_error
        assert memory.execute({"command": "view", "path": "/memories/\ud800"}).is_error
        assert memory.execute("no json").is_error
        assert memory.clear().content == "All memory was cleared"


@pytest.mark.parametrize("way", ["key_file", "passphrase", "passphrase_file", "key_command", "variable"])
def test_each_way_to_name_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    key, words = tmp_path / "k", tmp_path / "words"
    strongroom.generate_key_file(key)
    words.write_text("correct horse battery staple\n")
    words.chmod(0o600)
    ways: Dict[str, Dict[str, Any]] = {
        "key_file": {"key_file": key},
        "passphrase": {"passphrase": "correct horse battery staple"},
        "passphrase_file": {"passphrase_file": words},
        "key_command": {"key_command": ["cat", str(key)]},
        "variable": {},
    }
    if way == "variable":
        monkeypatch.setenv("STRONGROOM_KEY_FILE", str(key))
    with Store(tmp_path / "s", create=True, **ways[way]) as store:
        assert not store.tenant("a").execute(VIEW).is_error
    with Store(tmp_path / "s", **ways[way]) as store:
        assert store.role == "holder"
    monkeypatch.delenv("STRONGROOM_KEY_FILE", raising=False)
    wrong = {"passphrase": "wrong"}
    with pytest.raises(StrongroomError) as refused:
        Store(tmp_path / "s", **wrong)
    assert refused.value.code == "key"
    assert "correct horse" not in str(refused.value)


def test_a_missing_key_names_the_four_ways(tmp_path: Path) -> None:
    with pytest.raises(StrongroomError) as missing:
        Store(tmp_path / "s", create=True)
    assert missing.value.code == "key"
    for way in ("key_file", "passphrase,", "passphrase_file", "key_command"):
        assert way in str(missing.value)
    with pytest.raises(StrongroomError) as several:
        Store(tmp_path / "s", key_file="k", passphrase="p")
    assert several.value.code == "usage"
    with pytest.raises(TypeError, match="list"):
        Store(tmp_path / "s", key_command="cat k")
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_has_a_code(tmp_path: Path) -> None:
    place: Dict[str, Any] = {"path": tmp_path / "s", "key_file": tmp_path / "k"}
    strongroom.generate_key_file(tmp_path / "k")
    with pytest.raises(StrongroomError) as none:
        Store(**place)
    assert none.value.code == "not_found"
    with pytest.raises(StrongroomError) as policy:
        Store(**place, create=True, policy="nonsense")
    assert policy.value.code == "usage"
    with pytest.raises(StrongroomError):
        strongroom.generate_key_file(tmp_path / "k")
    store = Store(**place, create=True)
    with pytest.raises(StrongroomError) as name:
        store.tenant("../x")
    assert name.value.code == "usage"
    again = pickle.loads(pickle.dumps(name.value))
    assert (str(again), again.code) == (str(name.value), "usage")
    memory = store.tenant("a")
    store.close()
    store.close()
    closed = memory.execute(VIEW)
    assert closed.is_error and closed.failure is not None and "closed" in closed.failure
    assert str(tmp_path) not in str(closed.content)


def test_a_lost_key_is_no_reason_for_a_new_one(tmp_path: Path) -> None:
    key = tmp_path / "k"
    with Store(tmp_path / "s", key_file=key, create=True) as store:
        assert store.new_key_file == str(key)
    key.unlink()
    with pytest.raises(StrongroomError) as lost:
        Store(tmp_path / "s", key_file=key, create=True)
    assert lost.value.code == "key" and not key.exists()


def test_the_policy_of_a_new_store_binds(tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text('schema = 1\n[paths]\nread_only = ["/memories/**"]\n')
    with Store(tmp_path / "s", key_file=tmp_path / "k", create=True, policy=str(policy)) as store:
        refused = store.tenant("a").execute({"command": "create", "path": "/memories/a", "file_text": "x"})
        assert refused.is_error and "read-only" in str(refused.content)
