"""What has been spent, for good: a file or a database that every session of a dataset is charged in.

The guarantees and what cannot be detected: ``docs/ledger.md``. It needs SQLAlchemy.
"""

from tightrope.errors import MissingExtraError

try:
    import sqlalchemy as _  # noqa: F401 - said at once, in words of ours
except ImportError:
    raise MissingExtraError("sqlalchemy", "release") from None

from tightrope.ledger.account import Account, Ledger
from tightrope.ledger.identity import Claim, Identity
from tightrope.ledger.limits import Limit

__all__ = ["Account", "Claim", "Identity", "Ledger", "Limit"]
