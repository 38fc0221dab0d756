"""Try the packages without the checkout and its environment; the first failure ends the script.

    python scripts/try_package.py                       files, the minimal install, the whole one (make try-package)
    python scripts/try_package.py oldest python3.11     the fast suite, with the lowest versions that are allowed
    python scripts/try_package.py newest python3.13     the fast suite, with what pip finds today

Everything is built and installed outside of the checkout, by pip, from the wheel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from environments import Environment, lowest, made
from package_files import ABOUT, ROOT, about, of_source, of_wheel
from tried import ACCOUNTED, COMMANDS, PLANNED, WITHOUT_EXTRAS, tables

PYTEST = "pytest>=8.2", "pytest-benchmark>=5", "pytest-timeout>=2.3"
SUITE = *PYTEST, "hypothesis>=6.100", "mpmath>=1.3", "polars>=1"
READ_BY_TESTS = "tests", "docs", "examples", "scripts", "benchmarks", "pyproject.toml", "README.md"
EXTRAS = "all", "demo"
SHOWN = "numpy", "scipy", "typer", "msgspec", "pandas", "pyarrow", "duckdb", "ibis-framework", "sqlalchemy", "numba"


def main(job: str = "packages", python: str = sys.executable) -> None:
    """One of the three jobs."""
    with tempfile.TemporaryDirectory(prefix="tightrope-package-") as made_here:
        place = Path(made_here)
        wheel = built(place)
        if job == "packages":
            same_files(place, wheel)
            minimal(made(python, place, "minimal"), wheel)
            isolated(made(python, place, "isolated"), wheel)
            whole(made(python, place, "whole"), wheel)
        else:
            fast_suite(made(python, place, job), wheel, oldest={"oldest": True, "newest": False}[job])


def built(place: Path) -> Path:
    """Build the sdist, and the wheel from it, as pip does for an sdist."""
    _build("--outdir", str(place), str(ROOT))
    (wheel,) = place.glob("*.whl")
    say(f"built {wheel.name} from {next(place.glob('*.tar.gz')).name}")
    return wheel


def same_files(place: Path, wheel: Path) -> None:
    """The wheel holds what ``src`` holds; the checkout and the sdist make the same wheel, byte by byte."""
    insist(of_wheel(wheel) == of_source(), "the wheel holds other files than src")
    insist(about(wheel) == ABOUT, f"beside the package: {about(wheel) ^ ABOUT}")
    _build("--wheel", "--outdir", str(place / "straight"), str(ROOT))
    insist((place / "straight" / wheel.name).read_bytes() == wheel.read_bytes(), "the sdist makes another wheel")
    with tarfile.open(next(place.glob("*.tar.gz"))) as packed:
        loose = [name for name in packed.getnames() if "__pycache__" in name or name.endswith((".parquet", ".ledger"))]
    insist(not loose, f"the sdist holds what tools wrote: {loose}")
    say(f"files: {len(of_wheel(wheel))} in src and in the wheel, the same from the sdist and from the checkout")


def minimal(here: Environment, wheel: Path) -> None:
    """Without an extra: accounts, draws, every command says how it is used, and what is missing names its extra."""
    here.pip(str(wheel))
    tables(here.desk)
    script(here, ACCOUNTED)
    for words, code, expected in WITHOUT_EXTRAS:
        command(here, *words.split(), code=code, expected=expected)
    names = script(here, COMMANDS).splitlines()
    for name in names:
        command(here, *name.split(), "--help", expected=f"Usage: tightrope {name}")
    for shell, line in {"bash": "complete -o", "zsh": "#compdef tightrope", "fish": "complete --command"}.items():
        insist(
            line in here.run("tightrope", _TIGHTROPE_COMPLETE=f"source_{shell}").stdout, f"no completion for {shell}"
        )
    words = here.run("tightrope", _TIGHTROPE_COMPLETE="complete_bash", COMP_WORDS="tightrope re", COMP_CWORD="1").stdout
    insist(words.split() == ["release", "reproduce"], f"completion offers {words!r}")
    say(f"minimal: accounts, draws, {len(names)} commands say --help, {len(WITHOUT_EXTRAS)} calls, three shells")


def isolated(here: Environment, wheel: Path) -> None:
    """As pipx does it: only the command is on the PATH; and ``pip install --target``, run as a module."""
    here.pip(str(wheel))
    alone = here.desk / "alone"
    alone.mkdir()
    (alone / "tightrope").symlink_to(here.folder / "bin" / "tightrope")
    insist(
        here.run(alone / "tightrope", "--version", PATH=str(alone)).stdout.startswith("tightrope "), "the command alone"
    )
    target, empty = here.desk / "target", made(str(here.python), here.desk, "empty")
    here.pip("--target", str(target), str(wheel))
    ran = empty.run(empty.python, "-m", "tightrope", "noise", "--epsilon", "1", "--delta", "0", PYTHONPATH=str(target))
    insist("least noise" in ran.stdout, ran.stderr)
    say("isolated: only the command on the PATH; a folder of pip install --target")


def whole(here: Environment, wheel: Path) -> None:
    """With all extras: the README's example, a plan released and verified, a user's types."""
    here.pip(f"{wheel}[{','.join(EXTRAS)}]", "mypy", "hypothesis", *PYTEST)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)[0]
    script(here, f"{example}\nassert 0 < float(answers.certificate['epsilon']) <= 1\n")
    script(here, PLANNED)
    shutil.copy(ROOT / "examples" / "census" / "plan.toml", here.desk)
    command(here, "release", "plan.toml", expected="report.html")
    command(here, "verify", "certificate.json", expected="confirmed")
    insist("</style>" in (here.desk / "report.html").read_text(encoding="utf-8"), "a report without its style")
    copied(here)
    suite(here, "tests/test_typing.py", "tests/test_public_surface.py", "tests/studio/test_studio_command.py")
    say("whole: the README's example, a plan released and verified, a user's file under mypy --strict")


def fast_suite(here: Environment, wheel: Path, *, oldest: bool) -> None:
    """The fast suite against the installed wheel."""
    bounds = here.desk / "constraints.txt"
    bounds.write_text("\n".join(lowest(ROOT / "pyproject.toml", EXTRAS) if oldest else []))
    here.pip(f"{wheel}[{','.join(EXTRAS)}]", "--constraint", str(bounds), *SUITE)
    say(here.run(here.python, "--version").stdout + here.versions(SHOWN))
    copied(here)
    say(suite(here, "@tests/fast.txt"))


def copied(here: Environment) -> None:
    """What tests read, without ``src``: they can only find the wheel."""
    for name in READ_BY_TESTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, here.desk / name)


def suite(here: Environment, *words: str) -> str:
    """Run tests; warnings are not errors here, since other versions of libraries have other warnings."""
    ran = here.run(
        here.python, "-m", "pytest", "-p", "no:cacheprovider", "-o", "filterwarnings=default", *words, CI="true"
    )
    insist(ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:])
    return ran.stdout.strip().splitlines()[-1]


def command(here: Environment, *words: str, code: int = 0, expected: str) -> None:
    """``tightrope`` with these words ends with this code and says that."""
    ran = here.run("tightrope", *words)
    said = " ".join((ran.stdout + ran.stderr).split())
    insist(ran.returncode == code and expected in said, f"tightrope {' '.join(words)}: {ran.returncode}\n{said}")


def script(here: Environment, code: str) -> str:
    """What a program of the environment's Python prints."""
    ran = here.run(here.python, "-c", code)
    insist(ran.returncode == 0, ran.stderr)
    return ran.stdout


def insist(holds: bool, otherwise: str) -> None:
    """End with this sentence where something does not hold."""
    if not holds:
        raise SystemExit(otherwise)


def say(line: str) -> None:
    """A line of what was found."""
    print(line, flush=True)


def _build(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "build", *words], capture_output=True, text=True, check=False)
    insist(done.returncode == 0, done.stdout + done.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
