from __future__ import annotations


class StrongroomError(Exception):
    """The store did not do its work: it is locked, its key is wrong, it is damaged, and so on.

    What a model should read (a path outside /memories, a file that is too large) is no such
    error but an answer with ``is_error`` set.
    """

    code: str
    """The kind, stable across versions: usage, not_found, integrity, locked, key, no_space, other."""

    def __init__(self, text: str, code: str = "other") -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> "tuple[type[StrongroomError], tuple[str, str]]":
        return (type(self), (str(self), self.code))
