"""The datasets of a ledger: each declared once, with what a person is and what was promised."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from tightrope.errors import InputError, LedgerError, LedgerWarning
from tightrope.ledger.account import Account
from tightrope.ledger.identity import Identity
from tightrope.ledger.limits import MAIN_LIMIT, Limit
from tightrope.ledger.state import State
from tightrope.ledger.storage import chain
from tightrope.ledger.storage.book import Book, Written
from tightrope.ledger.storage.entry import DATASET, Entry


class Ledger:
    """The ledger in a file, or in PostgreSQL by URL (``postgresql://...``).

    ``create`` makes one where there is none; ``clock`` says the time (default: UTC, to the millisecond). Raises
    ``InputError`` where nothing is there or the place cannot be used, ``LedgerError`` where the ledger cannot be read
    or is older than its witness says.
    """

    def __init__(
        self, place: str | os.PathLike[str], *, create: bool = False, clock: Callable[[], str] | None = None
    ) -> None:
        self.book = Book(place, create=create, clock=clock)

    @property
    def id(self) -> str:
        """The random name that the ledger got when it was made."""
        return self.book.id

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return self.book.name

    def declare(self, identity: Identity, limits: Sequence[Limit], *, note: str = "") -> Account:
        """The account of a dataset: opened with these limits, or found as it was declared.

        Raises ``InputError`` where the dataset has another person, bounds, columns or limits in the ledger. A
        ``LedgerWarning`` says where a new one has the columns and the person of another: their promises add up.
        """
        _check_limits(limits)
        said = {"identity": identity.to_data(), "limits": [limit.to_data() for limit in limits], "note": note}

        def work(connection: Connection) -> Written[Entry]:
            found = chain.of_key(connection, identity.name, DATASET, DATASET)
            if found is not None:
                return found, None
            if chain.last_of(connection, identity.name) is not None:
                raise LedgerError(f"the ledger does not find what {identity.name!r} was declared as; {chain.CORRUPT}")
            made = chain.append(
                connection, identity.name, DATASET, DATASET, self.book.now(connection), (said, State().to_data())
            )
            return made, made

        known = self.book.read(lambda connection: chain.of_key(connection, identity.name, DATASET, DATASET))
        if known is None:
            self._warn_of_twins(identity)
        account = Account(self.book, known or self.book.write(work))
        account.identity.agree(identity)
        account.agree(limits)
        return account

    def _warn_of_twins(self, identity: Identity) -> None:
        declared = (Account(self.book, entry).identity for entry in self.book.of_kind(DATASET))
        twins = [repr(other.name) for other in declared if other.name != identity.name and other.alike(identity)]
        if twins:
            warnings.warn(
                LedgerWarning(
                    f"the ledger has {' and '.join(twins)} with the columns and the person of the new dataset "
                    f"{identity.name!r}; if they are about the same people, what both promise adds up, and no limit "
                    f"knows it: use one name, or say in its note why they are others"
                ),
                stacklevel=3,
            )

    def account(self, dataset: str) -> Account:
        """The account of a dataset; ``InputError`` where the ledger has none of this name."""
        found = self.book.read(lambda connection: chain.of_key(connection, dataset, DATASET, DATASET))
        if found is None:
            raise InputError("dataset", dataset, f"one of {self.datasets()}", "a first release declares it")
        return Account(self.book, found)

    def datasets(self) -> list[str]:
        """The names of all datasets, in the order in which they were declared."""
        return [entry.dataset for entry in self.book.of_kind(DATASET)]

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one dataset, in their order; not checked."""
        return self.book.entries(dataset)

    def close(self) -> None:
        """Let go of the file or the server."""
        self.book.close()


def _check_limits(limits: Sequence[Limit]) -> None:
    names = [limit.name for limit in limits]
    if len(set(names)) != len(names):
        raise InputError("limits", names, "a different name for each")
    for limit in limits:
        alike = next((name for name in names if limit.is_a_period(name)), None)
        if alike is not None:
            remedy = f"{limit.name!r} renews every {limit.every}, and one of its periods is called so"
            raise InputError("limits", alike, "no name of another limit's period", remedy)
    if not any(limit.name == MAIN_LIMIT and limit.every is None and limit.audience is None for limit in limits):
        raise InputError("limits", names, f"with one called {MAIN_LIMIT!r}, for everybody and for good")
