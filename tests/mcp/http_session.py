"""Runs `strongroom serve` with Python's requests: over TCP, under load, killed and ended in
between; every acknowledged write must be there afterwards.

Started by ./check in this directory, which gives the binary and a scratch directory. With
`--load CLIENTS SECONDS` it measures instead.
"""

import json
import multiprocessing
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import requests

BINARY, HOME = sys.argv[1], Path(sys.argv[2])
LOAD = [int(word) for word in sys.argv[4:6]] if sys.argv[3:4] == ["--load"] else None
ON_STORE = ["--store", str(HOME / "store"), "--key-file", str(HOME / "store.key")]


def strongroom(*words):
    done = subprocess.run([BINARY, *words, *ON_STORE], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout.strip()


class Server:
    """A server that can be ended and started again at the same port."""

    def __init__(self):
        self.port = 0
        self.log = []
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BINARY, "serve", *ON_STORE, "--listen", f"127.0.0.1:{self.port}"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for line in self.process.stderr:
            self.log.append(line)
            event = json.loads(line)
            if event["event"] == "listening":
                self.port = int(event["on"].rsplit(":", 1)[1])
                break
        threading.Thread(target=self.log.extend, args=(self.process.stderr,), daemon=True).start()

    def end(self, signal_number):
        self.process.send_signal(signal_number)
        self.process.wait(60)
        return self.process.returncode

    def url(self, tenant):
        return f"http://127.0.0.1:{self.port}/v1/tenants/{tenant}/memory"


def post(session, server, tenant, token, **body):
    headers = {"Authorization": f"Bearer {token}"}
    return session.post(server.url(tenant), json=body, headers=headers, timeout=60)


def conversation(server, token):
    with requests.Session() as session:
        def ask(status=200, **body):
            answer = post(session, server, "clinic/ada", token, **body)
            assert answer.status_code == status, (body, answer.status_code, answer.text)
            return answer.json()

        assert ask(command="create", path="/memories/a.md", file_text="one\n") == {
            "type": "tool_result",
            "content": "File created successfully at: /memories/a.md",
        }
        block = {
            "type": "tool_use", "id": "toolu_1", "name": "memory",
            "input": {"command": "view", "path": "/memories/a.md"},
        }  # fmt: skip
        result = ask(**block)
        assert result["tool_use_id"] == "toolu_1" and result["content"].endswith("1\tone"), result
        assert ask(command="create", path="/memories/a.md", file_text="x")["is_error"] is True
        assert ask(400, command="fly")["is_error"] is True


def append(url, token, name):
    """Another process: 150 lines into one file."""
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token}"
        for number in range(150):
            line = f"{name} {number}\n"
            body = {
                "command": "insert", "path": "/memories/log.md", "insert_line": 0,
                "insert_text": line,
            }  # fmt: skip
            assert session.post(url, json=body, timeout=60).status_code == 200


def two_processes_in_one_file(server, token):
    with requests.Session() as session:
        post(session, server, "clinic/log", token, command="create", path="/memories/log.md", file_text="")
        arguments = [(server.url("clinic/log"), token, name) for name in ("one", "two")]
        writers = [multiprocessing.Process(target=append, args=each) for each in arguments]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        seen = post(session, server, "clinic/log", token, command="view", path="/memories/log.md")
    found = {line.split("\t")[1] for line in seen.json()["content"].splitlines() if "\t" in line}
    expected = {f"{name} {n}" for name in ("one", "two") for n in range(150)}
    assert found == expected, len(found & expected)
    print(f"two processes through the server: {len(found)} of {len(expected)} lines")


def hammer(server, clients, seconds, ends):
    """Clients of their own tenants append lines, while the server is ended again and again."""
    acknowledged = [[] for _ in range(clients)]
    strange, slow, failed = [], [], [0]
    until = time.monotonic() + seconds
    tokens = [
        strongroom("token", "create", "--label", f"c{n}", "--tenants", f"load/{n}")
        for n in range(clients)
    ]

    def client(n):
        session, number = requests.Session(), 0
        while time.monotonic() < until:
            number += 1
            path = f"/memories/{number}.md"
            started = time.monotonic()
            try:
                answer = post(
                    session, server, f"load/{n}", tokens[n],
                    command="create", path=path, file_text=f"client {n} wrote {number}\n",
                )  # fmt: skip
            except requests.RequestException:
                failed[0] += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 200 and not answer.json().get("is_error"):
                slow.append(time.monotonic() - started)
                acknowledged[n].append(number)
            if number % 10 == 0 and acknowledged[n]:
                known = random.choice(acknowledged[n])
                try:
                    seen = post(
                        session, server, f"load/{n}", tokens[n],
                        command="view", path=f"/memories/{known}.md",
                    )  # fmt: skip
                except requests.RequestException:
                    continue
                if seen.status_code == 200 and f"client {n} wrote {known}" not in seen.text:
                    strange.append((n, known, seen.text))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for number in range(ends):
        time.sleep(seconds / (ends + 1))
        kind = signal.SIGKILL if number % 2 else signal.SIGTERM
        code = server.end(kind)
        assert code == (0 if kind == signal.SIGTERM else -signal.SIGKILL), code
        server.start()
    for thread in threads:
        thread.join()
    lost = []
    with requests.Session() as session:
        for n in range(clients):
            for number in acknowledged[n]:
                seen = post(
                    session, server, f"load/{n}", tokens[n],
                    command="view", path=f"/memories/{number}.md",
                )  # fmt: skip
                if f"client {n} wrote {number}" not in seen.text:
                    lost.append((n, number))
    total = sum(map(len, acknowledged))
    slow.sort()
    p50, p99 = slow[len(slow) // 2], slow[len(slow) * 99 // 100]
    print(
        f"{clients} clients, {seconds} s, {ends} ends of the server: {total} writes acknowledged, "
        f"{len(lost)} lost, {len(strange)} strange answers, {failed[0]} requests cut off; "
        f"p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"
    )
    assert total and not lost and not strange, (lost, strange)
    return p99, tokens


subprocess.run(
    [BINARY, "init", "--store", HOME / "store", "--generate-key", HOME / "store.key"],
    check=True, stdout=subprocess.DEVNULL,
)  # fmt: skip
token = strongroom("token", "create", "--label", "all", "--tenants", "clinic/*")
server = Server()
conversation(server, token)
two_processes_in_one_file(server, token)
if LOAD:
    clients, seconds = LOAD
    alone, _ = hammer(server, 1, seconds, 0)
    for n in range(1):
        strongroom("token", "revoke", f"c{n}")
    many, tokens = hammer(server, clients, seconds, max(2, seconds // 6))
    print(f"p99 of {clients} clients is {many / alone:.1f} times that of one")
else:
    _, tokens = hammer(server, 8, 8, 4)
assert server.end(signal.SIGTERM) == 0
strongroom("verify", "--read-only")
written = "".join(server.log)
for line in written.splitlines():
    json.loads(line)
for secret in [token, *tokens]:
    assert secret not in written and secret.split("_", 2)[2] not in written
for forbidden in ("/memories", "clinic", "load/", "client ", str(HOME)):
    assert forbidden not in written, forbidden
for file in (HOME / "store").rglob("*"):
    if file.is_file():
        stored = file.read_bytes()
        assert not any(secret.split("_", 2)[2].encode() in stored for secret in [token, *tokens]), file
print(f"{len(written.splitlines())} log lines without tokens, tenants, paths or content")
