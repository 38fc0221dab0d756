"""Runs ``tightrope`` with these arguments and prints how many of its modules and functions were executed, as JSON."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import FrameType

import tightrope

HOME = str(Path(tightrope.__file__).parent)


def main() -> None:
    """One line on standard error, behind all others."""
    executed: set[tuple[str, str]] = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME):
            executed.add((code.co_filename, code.co_qualname if sys.version_info >= (3, 11) else code.co_name))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        from tightrope.cli.main import main as command

        command()
    finally:
        sys.setprofile(None)
        functions = {one for one in executed if "<" not in one[1].rpartition(".")[2]}
        modules = {file for file, _ in functions}
        imported = {file for file, name in executed if name == "<module>"}
        counts = {"modules": len(modules), "functions": len(functions), "imported": len(imported)}
        sys.stderr.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
