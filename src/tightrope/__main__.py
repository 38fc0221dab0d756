"""Entry point of the command ``tightrope`` and of ``python -m tightrope``.

Ctrl-C while Python still loads the commands prints one line, as it does later.
"""

from __future__ import annotations

import signal
import sys

from tightrope.errors import INTERRUPTED, NOTHING_SPENT


def main() -> None:
    """Load the commands, and run the one that is asked for; once all is printed, nothing is left to interrupt."""
    try:
        from typer.main import get_command

        from tightrope.cli.main import app

        run = get_command(app)
    except KeyboardInterrupt:
        sys.stderr.write(f"tightrope: {NOTHING_SPENT}\n")
        sys.exit(INTERRUPTED)
    try:
        run()
    except SystemExit as end:
        if not end.code:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise


if __name__ == "__main__":
    main()
