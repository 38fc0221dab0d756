"""Where a table or a ledger is said to be: no address holds a password, and no error repeats one that might."""

from __future__ import annotations

import re

from tightrope.certificates.reading import hidden
from tightrope.engines.backends import postgres
from tightrope.errors import InputError

_SECRET = re.compile(r":[^@]*@|[?&;][^=]*(password|passwd|pwd|secret|token|key|sig|signature)=", re.IGNORECASE)
"""What stands before the host with a colon, or a parameter that is called like a secret."""


def checked(address: str, name: str = "source") -> str:
    """The path or URL; ``InputError``, which shows its scheme alone, where it may hold a password.

    The libraries that open it may write it into their logs.

    >>> checked("s3://clinic/visits")
    's3://clinic/visits'
    """
    if address.startswith(postgres.SCHEMES):
        return postgres.checked(address, name)
    if "://" in address and _SECRET.search(address.partition("://")[2]):
        remedy = "a password in a URL ends up in files and logs: say it where Spark is configured"
        raise InputError(name, hidden(address), "a URL without what may be a password", remedy)
    return address
