"""``python -m tightrope`` is the command ``tightrope``."""

from __future__ import annotations

from tightrope.cli.start import main

if __name__ == "__main__":
    main()
