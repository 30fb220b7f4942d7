"""The real tool runners of the `anthropic` package, against a scripted Messages API."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from anthropic import Anthropic, AsyncAnthropic

from strongroom import StrongroomMemoryTool, AsyncStrongroomMemoryTool

from .messages_api import PNG, MessagesApi, session

ASKED: Dict[str, Any] = {
    "model": "claude-test",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "Go on."}],
}
THREADS = [pytest.param({}, id="threads"), pytest.param({"thread": False}, id="no-threads")]
STREAMS = [pytest.param(False, id="plain"), pytest.param(True, id="streaming")]


def assert_threads(api: MessagesApi, threads: Dict[str, Any]) -> None:
    kinds = [(request.get("thread") or {}).get("type") for request in api.requests]
    if threads:
        assert set(kinds) == {None}
    else:
        assert kinds == ["create"] + ["continue"] * len(api.turns)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_session_with_the_sync_runner(place: Dict[str, Any], stream: bool, threads: Dict[str, Any]) -> None:
    with MessagesApi(session()) as api, StrongroomMemoryTool(tenant="clinic/ada", actor="agent", **place) as memory:
        assert not memory.memory.put_bytes("/memories/pixel.png", PNG).is_error
        client = Anthropic(base_url=api.url, api_key="none", max_retries=0)
        asked = {**ASKED, **threads, "tools": [memory]}
        if stream:
            for message_stream in client.beta.messages.tool_runner(stream=True, **asked):
                last = message_stream.get_final_message()
        else:
            last = client.beta.messages.tool_runner(**asked).until_done()
    assert last.content[0].text == "Done."  # type: ignore[union-attr]
    assert len(api.results) >= 30
    api.check()
    assert_threads(api, threads)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("stream", STREAMS)
async def test_a_session_with_the_async_runner(place: Dict[str, Any], stream: bool, threads: Dict[str, Any]) -> None:
    memory = await AsyncStrongroomMemoryTool.open(place.pop("store"), tenant="clinic/ada", **place)
    with MessagesApi(session()) as api:
        async with memory:
            assert not memory.memory.put_bytes("/memories/pixel.png", PNG).is_error
            async with AsyncAnthropic(base_url=api.url, api_key="none", max_retries=0) as client:
                asked = {**ASKED, **threads, "tools": [memory]}
                if stream:
                    async for message_stream in client.beta.messages.tool_runner(stream=True, **asked):
                        last = await message_stream.get_final_message()
                else:
                    last = await client.beta.messages.tool_runner(**asked).until_done()
    assert last.content[0].text == "Done."  # type: ignore[union-attr]
    api.check()
    assert_threads(api, threads)


def test_each_end_user_has_a_memory_of_their_own(place: Dict[str, Any]) -> None:
    with StrongroomMemoryTool(tenant="clinic/ada", **place) as ada:
        ada.call({"command": "create", "path": "/memories/a.md", "file_text": "Ada's\n"})
        with StrongroomMemoryTool(ada.store, tenant="clinic/bob") as bob:
            assert "a.md" not in str(bob.call({"command": "view", "path": "/memories"}))
        # A store that was given is not closed with the tool.
        assert "a.md" in str(ada.call({"command": "view", "path": "/memories"}))


def test_all_memory_of_one_tenant_is_cleared(place: Dict[str, Any]) -> None:
    with StrongroomMemoryTool(tenant="a", **place) as memory, StrongroomMemoryTool(memory.store, tenant="b") as other:
        for tool in (memory, other):
            for path in ("/memories/a.md", "/memories/.hidden", "/memories/d/e/f.md"):
                tool.call({"command": "create", "path": path, "file_text": "x\n"})
        assert memory.clear_all_memory() == "All memory was cleared"
        assert len(str(memory.call({"command": "view", "path": "/memories"})).splitlines()) == 2
        assert "/memories/a.md" in str(other.call({"command": "view", "path": "/memories"}))


def test_an_open_store_takes_no_key(place: Dict[str, Any]) -> None:
    with StrongroomMemoryTool(tenant="a", **place) as memory:
        with pytest.raises(TypeError, match="key_file"):
            StrongroomMemoryTool(memory.store, tenant="b", key_file="k")
