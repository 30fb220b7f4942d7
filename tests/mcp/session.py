"""Runs `strongroom mcp` with the official Python client: every command, errors, an image, two
clients on one store, cancellation, the end of the input.

Started by ./check in this directory, which gives the binary and a scratch directory.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client

BINARY, HOME = sys.argv[1], Path(sys.argv[2])
STORE, KEY = HOME / "store", HOME / "store.key"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
calls = 0


def words(tenant, *more):
    return ["mcp", "--store", str(STORE), "--key-file", str(KEY), "--tenant", tenant, *more]


def server(tenant, *more):
    return StdioServerParameters(command=BINARY, args=words(tenant, *more))


async def call(session, is_error=False, **arguments):
    global calls
    calls += 1
    result = await session.call_tool("memory", arguments)
    found = result.model_dump(by_alias=True)
    assert bool(found.get("isError")) == is_error, (arguments, found)
    (block,) = found["content"]
    return block["text"] if block["type"] == "text" else block


async def whole_session():
    async with stdio_client(server("clinic/ada", "--create")) as (read, write):
        async with ClientSession(read, write) as session:
            hello = (await session.initialize()).model_dump(by_alias=True)
            assert hello["serverInfo"]["name"] == "strongroom", hello
            assert "/memories" in hello["instructions"]
            (tool,) = (await session.list_tools()).model_dump(by_alias=True)["tools"]
            assert tool["name"] == "memory"
            schema = tool["inputSchema"]
            commands = schema["properties"]["command"]["enum"]
            assert commands == ["view", "create", "str_replace", "insert", "delete", "rename"]
            assert schema["required"] == ["command"]
            path = "/memories/people/ada.md"
            assert "0B\t/memories" in await call(session, command="view", path="/memories")
            text = await call(session, command="create", path=path, file_text="one\ntwo\n")
            assert text == f"File created successfully at: {path}", text
            text = await call(session, is_error=True, command="create", path=path, file_text="x")
            assert text == f"Error: File {path} already exists", text
            text = await call(session, command="view", path=path)
            assert text.endswith("     1\tone\n     2\ttwo"), text
            text = await call(session, command="view", path=path, view_range=[2, -1])
            assert text.endswith(":\n     2\ttwo"), text
            text = await call(
                session, command="str_replace", path=path, old_str="two", new_str="2"
            )
            assert text.startswith("The memory file has been edited."), text
            text = await call(
                session, is_error=True, command="str_replace", path=path, old_str="nine"
            )
            assert text.startswith("No replacement was performed"), text
            text = await call(
                session, command="insert", path=path, insert_line=1, insert_text="between\n"
            )
            assert text == f"The file {path} has been edited.", text
            text = await call(
                session, is_error=True, command="insert", path=path, insert_line=9, insert_text="x"
            )
            assert "[0, 3]" in text, text
            text = await call(
                session, command="rename", old_path=path, new_path="/memories/a.md"
            )
            assert text == f"Successfully renamed {path} to /memories/a.md", text
            secret = "the password is " + "hunter2" * 2
            text = await call(
                session, command="create", path="/memories/s.md", file_text=secret
            )
            assert "removed by policy: password" in text, text
            text = await call(session, command="view", path="/memories/s.md")
            assert "[REDACTED:password" in text and "hunter2" not in text, text
            text = await call(session, command="delete", path="/memories/s.md")
            assert text == "Successfully deleted /memories/s.md", text
            text = await call(session, is_error=True, command="view", path="/memories/../etc")
            assert "escape" in text, text
            text = await call(session, is_error=True, command="fly")
            assert "unknown command" in text, text
            text = await call(session, is_error=True)
            assert "`command` is missing" in text, text
            try:
                await session.call_tool("other", {})
                raise AssertionError("another tool was called")
            except Exception as error:
                assert "memory" in str(error), error


async def image():
    pictures = HOME / "pictures"
    pictures.mkdir()
    (pictures / "dot.png").write_bytes(PNG)
    subprocess.run(
        [BINARY, "import", "--store", STORE, "--key-file", KEY, "--tenant", "clinic/ada",
         "--from", pictures, "--images"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    async with stdio_client(server("clinic/ada")) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            block = await call(session, command="view", path="/memories/dot.png")
            assert block["type"] == "image" and block["mimeType"] == "image/png", block
            assert base64.b64decode(block["data"]) == PNG


async def two_clients_on_one_store():
    """150 lines each into one file, both at once: every line stays."""
    path = "/memories/log.md"

    async def writer(name, session):
        for number in range(150):
            await call(
                session, command="insert", path=path, insert_line=0,
                insert_text=f"{name} {number}\n",
            )  # fmt: skip

    async with stdio_client(server("shared")) as first, stdio_client(server("shared")) as second:
        async with ClientSession(*first) as one, ClientSession(*second) as two:
            await one.initialize()
            await two.initialize()
            await call(one, command="create", path=path, file_text="")
            await asyncio.gather(writer("one", one), writer("two", two))
            text = await call(two, command="view", path=path)
            found = {line.split("\t")[1] for line in text.splitlines() if "\t" in line}
            expected = {f"{name} {n}" for name in ("one", "two") for n in range(150)}
            assert found == expected, len(found & expected)
            print(f"two clients on one store: {len(found)} of {len(expected)} lines")


async def read_only():
    async with stdio_client(server("clinic/ada", "--read-only")) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            (tool,) = (await session.list_tools()).model_dump(by_alias=True)["tools"]
            assert tool["inputSchema"]["properties"]["command"]["enum"] == ["view"]
            assert tool["annotations"]["readOnlyHint"] is True
            await call(session, command="view", path="/memories/a.md")
            for arguments in (
                {"command": "create", "path": "/memories/x", "file_text": "x"},
                {"command": "delete", "path": "/memories/a.md"},
            ):
                text = await call(session, is_error=True, **arguments)
                assert "can only be read" in text, text
            await call(session, command="view", path="/memories/a.md")


HELLO = [
    {
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]  # fmt: skip


def raw(*messages, tenant="raw"):
    lines = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    done = subprocess.run(
        [BINARY, *words(tenant)], input=b"\n".join(lines) + b"\n", capture_output=True, timeout=60
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def tool_call(number, **arguments):
    params = {"name": "memory", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def end_of_input():
    """Calls that were written before the input ended are all answered, in order."""
    calls = [tool_call(1, command="create", path="/memories/r.md", file_text="")]
    calls += [
        tool_call(n, command="insert", path="/memories/r.md", insert_line=n - 2, insert_text=f"{n}\n")
        for n in range(2, 40)
    ]
    done, answers = raw(*HELLO, *calls)
    assert done.returncode == 0, done
    assert sorted(answer["id"] for answer in answers) == list(range(40)), answers
    assert not any(answer["result"].get("isError") for answer in answers), answers
    for silent in ([], HELLO[:1]):
        done, _ = raw(*silent)
        assert done.returncode == 0, done


def cancelled_and_malformed():
    """A cancelled call never keeps the server; what is no message does not end the session."""
    cancel = {
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2},
    }  # fmt: skip
    done, answers = raw(
        *HELLO,
        tool_call(1, command="create", path="/memories/c.md", file_text="x"),
        tool_call(2, command="create", path="/memories/d.md", file_text="x"),
        cancel,
        b"this is no message",
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"memory","arguments":{"command":"view","path":"\\ud800"}}}',
        {"jsonrpc": "2.0", "id": 6, "method": "no/such/method"},
        tool_call(7, command="view", path="/memories/c.md"),
    )
    assert done.returncode == 0, done
    by_id = {answer.get("id"): answer for answer in answers}
    assert "isError" not in by_id[1]["result"] or not by_id[1]["result"]["isError"], by_id
    assert "error" in by_id[6], by_id
    assert "1\tx" in by_id[7]["result"]["content"][0]["text"], by_id


def refused_at_the_start():
    done = subprocess.run([BINARY, "mcp", "--store", STORE, "--key-file", KEY], capture_output=True)
    assert done.returncode == 2 and b"--tenant" in done.stderr, done
    done = subprocess.run(
        [BINARY, "mcp", "--store", HOME / "none", "--key-file", KEY, "--tenant", "a"],
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 4 and done.stderr.count(b"\n") == 2, done


os.environ.pop("STRONGROOM_STORE", None)
asyncio.run(whole_session())
asyncio.run(image())
asyncio.run(two_clients_on_one_store())
asyncio.run(read_only())
end_of_input()
cancelled_and_malformed()
refused_at_the_start()
print(f"{calls} calls through the official client answered as they should be")
