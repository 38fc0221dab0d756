"""Runs ``tightrope`` with these arguments and prints how many of its modules and functions were executed, as JSON.

``modules`` and ``functions`` count functions that were called. ``modules_with_classes`` and ``functions_with_classes``
also count the bodies of classes, which run when their module is imported.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from pathlib import Path
from types import FrameType

import tightrope

HOME = str(Path(tightrope.__file__).parent)


def main() -> None:
    """One line on standard error, behind all others."""
    executed: set[tuple[str, str, bool]] = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME):
            executed.add((code.co_filename, code.co_qualname, bool(code.co_flags & inspect.CO_OPTIMIZED)))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        from tightrope.cli.main import main as command

        command()
    finally:
        sys.setprofile(None)
        named = {one for one in executed if "<" not in one[1].rpartition(".")[2]}
        functions = {one for one in named if one[2]}
        counts = {
            "modules": len({file for file, *_ in functions}),
            "functions": len(functions),
            "modules_with_classes": len({file for file, *_ in named}),
            "functions_with_classes": len(named),
            "imported": len({file for file, name, _ in executed if name == "<module>"}),
        }
        sys.stderr.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
