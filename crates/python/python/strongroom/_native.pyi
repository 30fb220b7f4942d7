import os
from collections.abc import Sequence

_Path = str | os.PathLike[str]
_Told = tuple[
    str | None,
    tuple[str, bytes] | None,
    bool,
    str | None,
    tuple[str, str] | None,
]

class Store:
    def __new__(
        cls,
        path: _Path,
        key_file: _Path | None,
        passphrase: str | None,
        passphrase_file: _Path | None,
        key_command: Sequence[str] | None,
        create: bool,
        policy: str | None,
        serve: bool,
    ) -> Store: ...
    def tenant(self, name: str, actor: str | None, session: str | None) -> Memory: ...
    @property
    def role(self) -> str: ...
    @property
    def new_key_file(self) -> str | None: ...
    def close(self) -> None: ...

class Memory:
    def execute(self, input: str) -> _Told: ...
    def put_bytes(self, path: str, data: bytes) -> _Told: ...
    def clear(self) -> _Told: ...

def generate_key_file(path: _Path) -> None: ...
