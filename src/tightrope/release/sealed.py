"""Objects of one life: what is spent through them cannot be set, copied or written down and read back."""

from __future__ import annotations

from typing import Any, NoReturn

from tightrope.errors import SealedError


class Sealed:
    """Nothing on it can be set or deleted; ``copy``, ``deepcopy`` and ``pickle`` refuse it with ``SealedError``.

    This stops what programs do by habit and what a library does for them. It is no wall against code that means to
    break in: whoever runs code in this process can read the table itself.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse(f"{name} cannot be set")

    def __delattr__(self, name: str) -> None:
        self._refuse(f"{name} cannot be deleted")

    def __copy__(self) -> NoReturn:
        self._refuse("it cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self._refuse("it cannot be copied")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("it cannot be pickled, nor sent to another process")

    def __replace__(self, **_: object) -> NoReturn:
        self._refuse("it cannot be copied with changes")

    def _refuse(self, what: str) -> NoReturn:
        raise SealedError(
            f"a {type(self).__name__.lower()} is sealed: {what}, because a second one would spend its budget again; "
            f"session.plan(...) makes a plan, tr.Session(...) a session"
        )
