"""Several processes, threads, and fork."""

from __future__ import annotations

import os
import sys
import signal
import subprocess
import multiprocessing
from typing import Any, Dict, List
from pathlib import Path
from threading import Thread

import pytest

from strongroom import Store, StrongroomError

# What is stuck would be stuck for ever: the suite ends it.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

VIEW = {"command": "view", "path": "/memories"}

HOLDER = """
import sys, strongroom
store = strongroom.Store("s", key_file="k", create=True)
store.tenant("a").execute({"command": "view", "path": "/memories"})
print(store.role, flush=True)
sys.stdin.read()
"""

WRITER = """
import sys, strongroom
name, lines = sys.argv[1], int(sys.argv[2])
with strongroom.Store("s", key_file="k", create=True) as store:
    memory = store.tenant("a")
    print(store.role, flush=True)
    sys.stdin.readline()
    for line in range(lines):
        command = {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": f"{name} {line}\\n"}
        answer = memory.execute(command)
        assert not answer.is_error, answer
"""


def start(home: Path, program: str, *args: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", program, *args],
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.role = process.stdout.readline().strip()  # type: ignore[attr-defined]
    return process


def end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.close()
    assert process.wait(60) == 0


def open_store(home: Path) -> Store:
    return Store(home / "s", key_file=home / "k", create=True)


def create(path: str, text: str = "") -> Dict[str, Any]:
    return {"command": "create", "path": path, "file_text": text}


def lines_of(store: Store) -> List[str]:
    seen = store.tenant("a").execute({"command": "view", "path": "/memories/a.md"})
    assert not seen.is_error, seen
    return [line.split("\t", 1)[1] for line in str(seen.content).splitlines()[1:]]


def test_two_processes_that_write_one_file_lose_no_line(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.tenant("a").execute(create("/memories/a.md"))
    writers = [start(tmp_path, WRITER, name, "150") for name in ("one", "two")]
    assert sorted(writer.role for writer in writers) == ["guest", "holder"]  # type: ignore[attr-defined]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.wait(120) == 0
    with open_store(tmp_path) as store:
        assert sorted(lines_of(store)) == sorted(f"{name} {line}" for name in ("one", "two") for line in range(150))


@pytest.mark.parametrize("how", ["in order", "killed"])
def test_a_guest_goes_on_when_its_holder_ends(tmp_path: Path, how: str) -> None:
    holder = start(tmp_path, HOLDER)
    with open_store(tmp_path) as store:
        assert store.role == "guest"
        memory = store.tenant("a")
        assert not memory.execute(create("/memories/a.md", "one\n")).is_error
        if how == "killed":
            holder.kill()
            holder.wait()
        else:
            end(holder)
        insert = {"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "two\n"}
        assert not memory.execute(insert).is_error
        assert store.role == "holder"
        assert lines_of(store) == ["one", "two"]


def in_child(work: Any) -> str:
    """What ``work`` says in a child made by ``fork``."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as source:
        said = source.read().decode()
    os.waitpid(child, 0)
    return said


def test_a_use_after_fork_says_so_and_a_child_opens_its_own(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        memory = store.tenant("a")
        memory.execute(create("/memories/a.md", "one\n"))
        for use in (
            lambda: memory.execute(VIEW),
            lambda: memory.put_bytes("/memories/b.md", b"x"),
            memory.clear,
            lambda: store.close(),
        ):
            said = in_child(use)
            assert said.startswith("StrongroomError: ") and "open the store after fork" in said, said

        def own() -> List[Any]:
            with open_store(tmp_path) as mine:
                return [mine.role, lines_of(mine)]

        assert in_child(own) == "['guest', ['one']]"
        # A child that just ends takes nothing from its parent.
        assert in_child(lambda: None) == "None"
        assert lines_of(store) == ["one"]
        assert store.role == "holder"


def worker(arguments: Any) -> bool:
    home, name = arguments
    with Store(home / "s", key_file=home / "k") as store:
        command = {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": f"{name}\n"}
        return not store.tenant("a").execute(command).is_error


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_share_the_store(tmp_path: Path, method: str) -> None:
    with open_store(tmp_path) as store:
        store.tenant("a").execute(create("/memories/a.md"))
        with multiprocessing.get_context(method).Pool(4) as pool:
            assert pool.map(worker, [(tmp_path, name) for name in range(12)]) == [True] * 12
        assert sorted(lines_of(store), key=int) == [str(name) for name in range(12)]


FORKER = """
import os, sys, strongroom
store = strongroom.Store("s", key_file="k", create=True)
store.tenant("a").execute({"command": "view", "path": "/memories"})
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.close(0)
    os.close(1)
    os.read(int(sys.argv[1]), 1)
    os._exit(0)
print(store.role, flush=True)
sys.stdin.read()
store.close()
"""


@pytest.mark.parametrize("how", ["in order", "killed"])
def test_a_child_that_lives_on_does_not_keep_the_store_locked(tmp_path: Path, how: str) -> None:
    """Nor does it keep a guest waiting for an answer of its parent."""
    reader, writer = os.pipe()
    forker = subprocess.Popen(
        [sys.executable, "-c", FORKER, str(reader)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[reader],
    )
    os.close(reader)
    assert forker.stdout is not None
    assert forker.stdout.readline() == "holder\n"
    with open_store(tmp_path) as store:
        assert store.role == "guest"
        if how == "killed":
            forker.kill()
            forker.wait()
        else:
            end(forker)
        assert not store.tenant("a").execute(create("/memories/a.md", "one\n")).is_error
        assert store.role == "holder"
    os.close(writer)


def test_eight_threads_share_a_store(tmp_path: Path) -> None:
    failed: List[Any] = []

    def work(number: int) -> None:
        memory = store.tenant(f"t/{number}")
        for file in range(10):
            answer = memory.execute(create(f"/memories/{file}.md", f"{number}\n"))
            if answer.is_error:
                failed.append(answer)

    for is_guest in (False, True):
        home = tmp_path / str(is_guest)
        home.mkdir()
        holder = start(home, HOLDER) if is_guest else None
        with open_store(home) as store:
            assert store.role == ("guest" if is_guest else "holder")
            threads = [Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failed == []
            for number in range(8):
                seen = store.tenant(f"t/{number}").execute({"command": "view", "path": "/memories/9.md"})
                assert str(seen.content).endswith(f"\t{number}")
        if holder is not None:
            end(holder)


def test_python_goes_on_while_the_store_is_opened(tmp_path: Path) -> None:
    """The key comes from a pipe that another thread of Python writes: were the global lock
    held, nobody could."""
    from strongroom import generate_key_file

    generate_key_file(tmp_path / "k")
    Store(tmp_path / "s", key_command=["cat", str(tmp_path / "k")], create=True).close()
    os.mkfifo(tmp_path / "pipe")
    opened: List[Store] = []

    def opens() -> None:
        opened.append(Store(tmp_path / "s", key_command=["cat", str(tmp_path / "pipe")]))

    thread = Thread(target=opens)
    thread.start()
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write((tmp_path / "k").read_bytes())
    thread.join()
    opened[0].close()


def test_python_goes_on_while_a_call_is_under_way(tmp_path: Path) -> None:
    """The holder is stopped, and started again by another thread of Python while a call waits
    for it: were the global lock held, the call would wait for ever."""
    holder = start(tmp_path, HOLDER)
    with open_store(tmp_path) as store:
        memory = store.tenant("a")
        os.kill(holder.pid, signal.SIGSTOP)
        answers: List[Any] = []
        thread = Thread(target=lambda: answers.append(memory.execute(VIEW)))
        thread.start()
        # It cannot have an answer, whatever has happened by now.
        assert answers == []
        os.kill(holder.pid, signal.SIGCONT)
        thread.join()
        assert not answers[0].is_error
        end(holder)


def test_another_key_is_no_way_in_while_the_store_is_open(tmp_path: Path) -> None:
    from strongroom import generate_key_file

    generate_key_file(tmp_path / "other")
    with open_store(tmp_path):
        with pytest.raises(StrongroomError) as refused:
            Store(tmp_path / "s", key_file=tmp_path / "other")
        assert refused.value.code == "key"
