from __future__ import annotations

import os
from typing import Any, Dict
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("STRONGROOM_") and name != "STRONGROOM_BIN"]:
        monkeypatch.delenv(name)


@pytest.fixture
def place(tmp_path: Path) -> Dict[str, Any]:
    """Arguments that open one store of the test's own."""
    return {"store": tmp_path / "store", "key_file": tmp_path / "store.key", "create": True}
