"""The store without any SDK."""

from __future__ import annotations

import os
import json
import atexit
import base64
import logging
import weakref
from types import TracebackType
from typing import Any, Dict, List, Union, Mapping, Optional, Sequence
from dataclasses import dataclass

from . import _native

log = logging.getLogger("strongroom")

StrPath = Union[str, "os.PathLike[str]"]

KEEP_THE_KEY = "Without this key nothing in the store can ever be read. Keep a copy elsewhere."


@dataclass(frozen=True)
class Answer:
    """The answer to one call: what goes into the ``tool_result`` block."""

    content: Union[str, List[Dict[str, Any]]]
    """A text, or a list with one image block."""

    is_error: bool
    """Whether the model is told that the command failed."""

    tool_use_id: Optional[str] = None
    """The ``id`` of the ``tool_use`` block, if the input was one."""

    failure: Optional[str] = None
    """Set when it was the store that failed, not the command: a line for the log."""

    failure_code: Optional[str] = None
    """As :attr:`StrongroomError.code`."""

    def to_tool_result(self, tool_use_id: Optional[str] = None) -> Dict[str, Any]:
        """The whole ``tool_result`` block."""
        result: Dict[str, Any] = {"type": "tool_result"}
        tool_use_id = tool_use_id or self.tool_use_id
        if tool_use_id is not None:
            result["tool_use_id"] = tool_use_id
        result["content"] = self.content
        if self.is_error:
            result["is_error"] = True
        return result


class Store:
    """An encrypted memory store with many tenants.

    Opens the store, or connects to the process that holds it. When that process ends, the next
    call opens the store or connects to its next holder. While this process holds it, it serves
    others, unless ``serve`` is false. All stores of one process in the same directory are one.

    Threads may share a store. A child made by ``fork`` may not use its parent's, and is told so:
    open one there. Name at most one key source; without any, ``STRONGROOM_KEY_FILE``,
    ``STRONGROOM_PASSPHRASE_FILE`` and ``STRONGROOM_KEY_COMMAND`` are asked.

    Args:
        path: The store's directory, on a local disk.
        key_file: The key is in this file.
        passphrase: The passphrase itself.
        passphrase_file: The passphrase is the first line of this file.
        key_command: This program, with its arguments, prints the key line. No shell reads it.
        create: Create the store if there is none, and its key file if there is neither.
        policy: The policy of a store that is created: default, strict, hipaa, pci, or a file.
        serve: Take calls of other processes while this one holds the store.

    Raises:
        StrongroomError: With ``code`` locked, key, not_found, integrity and so on.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        key_file: Optional[StrPath] = None,
        passphrase: Optional[str] = None,
        passphrase_file: Optional[StrPath] = None,
        key_command: Optional[Sequence[str]] = None,
        create: bool = False,
        policy: Optional[str] = None,
        serve: bool = True,
    ) -> None:
        if isinstance(key_command, str):
            raise TypeError("key_command is a list: the program, then each of its arguments")
        self._native = _native.Store(
            path,
            key_file,
            passphrase,
            passphrase_file,
            key_command if key_command is None else list(key_command),
            create,
            policy,
            serve,
        )
        self._directory = os.path.realpath(path)
        _open_stores.add(self)
        if self._native.new_key_file is not None:
            log.warning("wrote the key of a new store to %s. %s", self._native.new_key_file, KEEP_THE_KEY)

    def tenant(self, name: str, *, actor: Optional[str] = None, session: Optional[str] = None) -> Memory:
        """The memory of one tenant: 1 to 128 of ``A-Z a-z 0-9 . _ @ : -`` with ``/`` between parts.

        Creates nothing; the first write does. ``actor`` and ``session`` are what the audit log names.
        """
        return Memory(self._native.tenant(name, actor, session))

    @property
    def role(self) -> str:
        """How this process has the store now: ``holder``, ``holder, not serving``, ``guest`` or ``detached``."""
        return self._native.role

    @property
    def new_key_file(self) -> Optional[str]:
        """The key file that ``create`` made, if it made one."""
        path = self._native.new_key_file
        return None if path is None else os.fspath(path)

    def close(self) -> None:
        """Gives the store up, with all memories it made. The process's last one closes it, once the
        calls of other processes that are under way are done. Twice is once."""
        _open_stores.discard(self)
        self._native.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


class Memory:
    """One tenant's memory. Made by :meth:`Store.tenant`; threads may share it."""

    def __init__(self, native: _native.Memory) -> None:
        self._native = native

    def execute(self, input: Union[str, Mapping[str, Any]]) -> Answer:
        """Carries out one tool input, or a whole ``tool_use`` block: a mapping, or its JSON text.

        Never raises for what the model sent. The answer is durable before this returns.
        """
        return _answer(self._native.execute(input if isinstance(input, str) else json.dumps(input)))

    def put_bytes(self, path: str, data: bytes) -> Answer:
        """Stores an image (``.png``, ``.jpg``, ``.jpeg``) or UTF-8 text that the host brings."""
        return _answer(self._native.put_bytes(path, bytes(data)))

    def clear(self) -> Answer:
        """Deletes everything below ``/memories`` that policy and holds let go."""
        return _answer(self._native.clear())


def generate_key_file(path: StrPath) -> None:
    """Makes a key file: one random key in one line of text, mode 0600, never over a file that exists.

    Without this file nothing in the store can ever be read. Keep a copy elsewhere.
    """
    _native.generate_key_file(path)


def _answer(told: _native._Told) -> Answer:
    text, image, is_error, tool_use_id, failure = told
    content: Union[str, List[Dict[str, Any]]] = text or ""
    if image is not None:
        media_type, data = image
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
        content = [{"type": "image", "source": source}]
    code = None
    if failure is not None:
        code, failure_text = failure
        log.error("%s (%s)", failure_text, code)
        return Answer(content, is_error, tool_use_id, failure_text, code)
    return Answer(content, is_error, tool_use_id)


_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _close_all() -> None:
    # A store that was closed in order opens faster. Nothing that was answered depends on it.
    for store in list(_open_stores):
        try:
            store.close()
        except Exception:
            log.exception("failed to close the store")


def _leave_to_parent() -> None:
    """In a child made by ``fork``: closes its copies of the stores' files. They carry the locks
    on them, which would outlive the parent."""
    below = tuple(os.path.join(store._directory, "") for store in _open_stores)
    _open_stores.clear()
    if not below or not os.path.isdir("/proc/self/fd"):
        return
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith(below):
                os.close(int(name))
        except OSError:
            pass  # the listing's own descriptor


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
