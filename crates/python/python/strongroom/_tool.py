"""The memory tool for the tool runners of the ``anthropic`` package."""

from __future__ import annotations

import os
from typing import Any, Union, Mapping, Optional, Sequence, cast

import anyio.to_thread
from anthropic.lib.tools import (
    ToolError,
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818Command,
    BetaMemoryTool20250818ViewCommand,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
)

from ._store import Store, Answer, Memory, StrPath


class _Attached:
    """What both tools share: the store and the tenant's memory."""

    store: Store
    """The store, which :meth:`close` closes unless it was given."""

    memory: Memory
    """The tenant's memory, for the host: ``put_bytes`` and the like."""

    def _attach(
        self,
        store: Union[Store, StrPath],
        tenant: str,
        actor: Optional[str],
        session: Optional[str],
        options: Mapping[str, Any],
    ) -> None:
        if isinstance(store, Store):
            named = [name for name, value in options.items() if value is not None]
            if named:
                raise TypeError(f"the store is open already; {', '.join(named)} belong to Store(...)")
            self.store, self._is_own = store, False
        else:
            given = {name: value for name, value in options.items() if value is not None}
            self.store, self._is_own = Store(store, **given), True
        self.memory = self.store.tenant(tenant, actor=actor, session=session)

    def _close(self) -> None:
        if self._is_own:
            self.store.close()


class StrongroomMemoryTool(_Attached, BetaAbstractMemoryTool):
    """Claude's memory tool on an encrypted store, for ``client.beta.messages.tool_runner``.

    ::

        memory = StrongroomMemoryTool("./store", tenant=f"clinic/{user}", key_file="store.key")
        runner = client.beta.messages.tool_runner(..., tools=[memory])

    Args:
        store: The store's directory, or an open :class:`Store`. The other arguments but
            ``tenant``, ``actor``, ``session`` and ``cache_control`` are those of :class:`Store`.
        tenant: Whose memory. One tenant never sees another's: name one for each end user.
        actor: Who acts, for the audit log.
        session: In which session, for the audit log.
    """

    def __init__(
        self,
        store: Union[Store, StrPath],
        *,
        tenant: str,
        actor: Optional[str] = None,
        session: Optional[str] = None,
        key_file: Optional[StrPath] = None,
        passphrase: Optional[str] = None,
        passphrase_file: Optional[StrPath] = None,
        key_command: Optional[Sequence[str]] = None,
        create: Optional[bool] = None,
        policy: Optional[str] = None,
        serve: Optional[bool] = None,
        cache_control: Optional[BetaCacheControlEphemeralParam] = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        options = {
            "key_file": key_file,
            "passphrase": passphrase,
            "passphrase_file": passphrase_file,
            "key_command": key_command,
            "create": create,
            "policy": policy,
            "serve": serve,
        }
        self._attach(store, tenant, actor, session, options)

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Carries out what the model sent, as it was sent.

        Raises:
            ToolError: With the text for the model, unchanged.
            StrongroomError: After ``fork``.
        """
        return _result(self.memory.execute(_mapping(input)))

    def execute(self, command: BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        return self.call(command)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return self.call(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return self.call(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return self.call(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return self.call(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return self.call(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return self.call(command)

    def clear_all_memory(self) -> BetaFunctionToolResultType:
        """Deletes everything of this tenant that policy and holds let go."""
        return _result(self.memory.clear())

    def close(self) -> None:
        """Closes the store, unless it was given as a :class:`Store`."""
        self._close()

    def __enter__(self) -> StrongroomMemoryTool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStrongroomMemoryTool(_Attached, BetaAsyncAbstractMemoryTool):
    """As :class:`StrongroomMemoryTool`, for ``AsyncAnthropic``: the store works on another thread.

    Making one opens the store, which can take a moment. In a running event loop use
    :meth:`open`, which does that on another thread too.
    """

    def __init__(
        self,
        store: Union[Store, StrPath],
        *,
        tenant: str,
        actor: Optional[str] = None,
        session: Optional[str] = None,
        key_file: Optional[StrPath] = None,
        passphrase: Optional[str] = None,
        passphrase_file: Optional[StrPath] = None,
        key_command: Optional[Sequence[str]] = None,
        create: Optional[bool] = None,
        policy: Optional[str] = None,
        serve: Optional[bool] = None,
        cache_control: Optional[BetaCacheControlEphemeralParam] = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        options = {
            "key_file": key_file,
            "passphrase": passphrase,
            "passphrase_file": passphrase_file,
            "key_command": key_command,
            "create": create,
            "policy": policy,
            "serve": serve,
        }
        self._attach(store, tenant, actor, session, options)

    @classmethod
    async def open(cls, store: Union[Store, StrPath], **options: Any) -> AsyncStrongroomMemoryTool:
        """Makes the tool without holding up the event loop."""
        return await anyio.to_thread.run_sync(lambda: cls(store, **options))

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """As :meth:`StrongroomMemoryTool.call`."""
        return _result(await anyio.to_thread.run_sync(self.memory.execute, _mapping(input)))

    async def execute(self, command: BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return await self.call(command)

    async def clear_all_memory(self) -> BetaFunctionToolResultType:
        """Deletes everything of this tenant that policy and holds let go."""
        return _result(await anyio.to_thread.run_sync(self.memory.clear))

    async def close(self) -> None:
        """Closes the store, unless it was given as a :class:`Store`."""
        await anyio.to_thread.run_sync(self._close)

    async def __aenter__(self) -> AsyncStrongroomMemoryTool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _mapping(command: object) -> Mapping[str, Any]:
    """The input as the model sent it, or the fields that a command of the SDK's was given."""
    to_dict = getattr(command, "to_dict", None)
    return cast("Mapping[str, Any]", command if to_dict is None else to_dict())


def _result(answer: Answer) -> BetaFunctionToolResultType:
    if answer.is_error:
        raise ToolError(cast(Any, answer.content))
    return cast(BetaFunctionToolResultType, answer.content)
