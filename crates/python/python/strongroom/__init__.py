"""Claude's memory tool (memory_20250818) on a hardened, encrypted store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._store import Store, Answer, Memory, generate_key_file
from ._errors import StrongroomError

if TYPE_CHECKING:
    from ._tool import StrongroomMemoryTool, AsyncStrongroomMemoryTool

__all__ = [
    "Answer",
    "AsyncStrongroomMemoryTool",
    "Memory",
    "Store",
    "StrongroomError",
    "StrongroomMemoryTool",
    "generate_key_file",
]


def __getattr__(name: str) -> Any:
    # The tools need the `anthropic` package, the store does not.
    if name in ("StrongroomMemoryTool", "AsyncStrongroomMemoryTool"):
        try:
            from . import _tool
        except ImportError as error:
            raise ImportError(f"{name} needs the anthropic package: pip install 'strongroom[anthropic]'") from error
        return getattr(_tool, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
