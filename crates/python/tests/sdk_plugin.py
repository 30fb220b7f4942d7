"""Points the SDK's own tests of its file tool at `StrongroomMemoryTool`, without a change to
them: the tool's two classes are replaced where they are imported from, and what the tests read
of files on disk is read of an export."""

from __future__ import annotations

import os
import tempfile
import subprocess
from typing import Any, Dict, List
from pathlib import Path

import pytest
from anthropic.lib.tools import _beta_builtin_memory_tool as sdk

from strongroom import StrongroomMemoryTool, AsyncStrongroomMemoryTool


def _place(base_path: str) -> Dict[str, Any]:
    base = Path(base_path)
    return {"store": base / "store", "key_file": base / "key", "tenant": "t", "create": True}


class SyncTool(StrongroomMemoryTool):
    def __init__(self, base_path: str = "./memory") -> None:
        self.base_path = Path(base_path)
        super().__init__(**_place(base_path))


class AsyncTool(AsyncStrongroomMemoryTool):
    def __init__(self, base_path: str = "./memory") -> None:
        self.base_path = Path(base_path)
        super().__init__(**_place(base_path))


sdk.BetaLocalFilesystemMemoryTool = SyncTool  # type: ignore[assignment, misc]
sdk.BetaAsyncLocalFilesystemMemoryTool = AsyncTool  # type: ignore[assignment, misc]


def snapshot(base_path: str) -> Dict[str, str]:
    """By the operator's command, which goes through the process that holds the store: this."""
    base = Path(base_path)
    with tempfile.TemporaryDirectory() as home:
        words = [os.environ["STRONGROOM_BIN"], "export", "--tenant", "t", "--to", f"{home}/memories"]
        words += ["--store", str(base / "store"), "--key-file", str(base / "key")]
        subprocess.run(words, check=True, capture_output=True)
        files = [path for path in Path(home).rglob("*") if path.is_file()]
        return {str(path.relative_to(home)): path.read_bytes().decode() for path in files}


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    for item in items:
        if hasattr(item.module, "get_directory_snapshot"):  # type: ignore[attr-defined]
            item.module.get_directory_snapshot = snapshot  # type: ignore[attr-defined]
