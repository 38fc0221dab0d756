"""The ledger: a file or a database that records, durably, what every session of a dataset has spent.

The guarantees and what cannot be detected: ``docs/ledger.md``. It needs SQLAlchemy.
"""

from tightrope.errors import MissingExtraError

try:
    import sqlalchemy as _  # noqa: F401 - raises MissingExtraError at import
except ImportError:
    raise MissingExtraError("sqlalchemy", "release") from None

from tightrope.ledger.account import Account, Ledger
from tightrope.ledger.identity import Claim, Identity
from tightrope.ledger.limits import Limit

__all__ = ["Account", "Claim", "Identity", "Ledger", "Limit"]
