"""tightrope couple: fit, apply and check from the command line, and everything that people type wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tightrope.cli.couple.check import _format_number

LAWS = "point,group,mass\nnorth,f,0.5\nsouth,f,0.5\nnorth,m,0.25\neast,m,0.75\n"
MAP = ("--value", "lat", "--value", "lon", "--group", "sex", "--grid", "3x4", "--bounds", "0,3", "--bounds=-2,2")
HOMES = ("--value", "home", "--group", "sex")
AGES = ("--value", "age", "--group", "sex", "--bins", "5", "--bounds", "0,100")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two thousand people on a map, with ages and homes."""
    rng, size = np.random.default_rng(5), 2000
    sex = rng.integers(2, size=size)
    columns = {
        "lat": rng.beta(2, 2 + sex) * 3,
        "lon": rng.normal(0, 1, size),
        "age": rng.integers(0, 70 + 20 * sex),
        "home": np.array(["north", "south", "east"])[np.minimum(rng.integers(0, 4, size), 1 + sex)],
        "sex": np.array(["f", "m"])[sex],
        "person": np.arange(size) // 2,
        "flag": sex == 1,
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.fixture
def laws(tmp_path: Path) -> Path:
    place = tmp_path / "laws.csv"
    place.write_text(LAWS, encoding="utf-8")
    return place


def shares(path: Path, column: str) -> dict[Any, float]:
    values, counts = np.unique(pyarrow.parquet.read_table(path)[column].to_numpy(), return_counts=True)
    return dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_a_map_from_fit_to_check(run, data, tmp_path, objective):
    out, drawn, picture = (tmp_path / name for name in ("m.json", "drawn.parquet", "map.svg"))
    words = ("couple", "fit", data, *MAP, "--objective", objective, "--out", out, "--plot", picture)
    found = json.loads(run(*words, "--json").out)
    assert found["points"] == 12
    assert found["origin"]["kind"] == "table"
    assert found["target_error"] < 2.0**-120
    assert [one["group"] for one in found["groups"]] == ["f", "m"]
    assert all(0 <= one["mean"] <= one["largest"] <= 5 for one in found["groups"])
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    assert {path.stat().st_mode & 0o077 for path in (out, picture)} == {0}
    assert "exact group distributions" in " ".join(run(*words, "--force").out.split())
    done = json.loads(run("couple", "apply", out, data, "--out", drawn, "--keep", "person", "--json").out)
    assert done == {"rows": 2000, "out": str(drawn), "columns": ["lat", "lon", "person"]}
    assert set(shares(drawn, "lat")) <= {0.5, 1.5, 2.5}
    checked = json.loads(run("couple", "check", out, "--json").out)
    assert checked["known_exactly"]["total_variation"] < 1e-30
    assert checked["loss"] == {
        one["group"]: one["mean" if objective == "expected" else "largest"] for one in found["groups"]
    }
    assert "one output per value" in run("couple", "check", out).out


def test_a_line_and_its_picture(run, data, tmp_path):
    out, picture = tmp_path / "m.json", tmp_path / "line.png"
    run("couple", "fit", data, *AGES, "--target", "m", "--out", out, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    checked = json.loads(run("couple", "check", out, "--json").out)
    assert checked["loss"]["m"] == 0.0
    assert checked["loss"]["f"] > 0
    drawn = tmp_path / "drawn.parquet"
    assert "2,000 rows" in run("couple", "apply", out, data, "--out", drawn).out
    assert set(shares(drawn, "age")) <= {10.0, 30.0, 50.0, 70.0, 90.0}


def test_a_partial_coupling_from_fit_to_check(run, data, tmp_path):
    """Less movement for a larger δ; the file is verified, and states what it hides."""
    means, frontier = {}, tmp_path / "frontier.svg"
    for delta in ("0", "0.05", "0.1"):
        out = tmp_path / f"m{delta}.json"
        words = ("couple", "fit", data, *AGES, "--delta", delta, "--frontier", frontier, "--out", out, "--force")
        found = json.loads(run(*words, "--json").out)
        means[delta] = sum(one["mean"] for one in found["groups"]) / 2
        assert frontier.read_text(encoding="utf-8").startswith("<?xml")
        assert frontier.stat().st_mode & 0o077 == 0
        if delta == "0":
            assert "delta" not in found
            continue
        assert found["delta"] == float(delta)
        assert found["mean"] == pytest.approx(means[delta], abs=1e-12)
        assert found["lower"] == pytest.approx(found["mean"], rel=1e-6)
        assert found["lower"] <= found["mean"]
        curve = found["frontier"]
        assert found["frontier_is_exact"]
        assert curve[0]["mean"] == pytest.approx(means["0"], rel=1e-6)
        assert [one["delta"] for one in curve] == sorted(one["delta"] for one in curve)
        assert curve[-1]["mean"] == pytest.approx(0, abs=1e-9)
    assert means["0.1"] < means["0.05"] < means["0"]
    out = tmp_path / "m0.1.json"
    checked = json.loads(run("couple", "check", out, "--json").out)
    assert 0.09 < checked["known_exactly"]["total_variation"] <= checked["delta"] == 0.1
    assert "CONFIRMED" in run("verify", out).out
    printed = " ".join(run("couple", "check", out, "--samples", "100000").out.split())
    assert "differ in total variation by at most 0.1 (epsilon 0, delta 0.1): at least 90 % of each group" in printed
    assert "total variation 0.1 " in printed
    sampled = json.loads(run("couple", "check", out, "--samples", "100000", "--json").out)["sampled"]
    assert 0.1 < sampled["total_variation"] < 0.15
    drawn = tmp_path / "drawn.parquet"
    assert "2,000 rows" in run("couple", "apply", out, data, "--out", drawn).out
    forged = json.loads(out.read_text(encoding="utf-8"))
    forged["common_part"]["delta"] = 0.05
    out.write_text(json.dumps(forged), encoding="utf-8")
    run("couple", "check", out).refused_with("common part")
    assert "REFUTED" in run("verify", out).out


def test_a_group_that_is_the_target_does_not_move(run, data, tmp_path):
    """Integers over 2¹²⁰ differ from the group's own masses by less than is shown."""
    words = ("couple", "fit", data, *AGES, "--target", "m", "--delta", "0.05", "--out", tmp_path / "m.json")
    found = {one["group"]: one for one in json.loads(run(*words, "--json").out)["groups"]}
    assert found["m"]["largest"] == 0
    assert found["m"]["mean"] < 1e-12
    assert found["f"]["mean"] > 0
    printed = [line.split() for line in run(*words, "--force").out.splitlines()]
    assert ["m", "0", "0", "100", "%"] in printed


def test_what_a_partial_coupling_reports(run, data, tmp_path):
    words = ("couple", "fit", data, *HOMES, "--delta", "0.1", "--report", tmp_path / "m.html", "--out", tmp_path / "m")
    printed = " ".join(run(*words, "--plot", tmp_path / "m.png", "--frontier", tmp_path / "f.png").out.split())
    assert "at least 90 % of each group have a common output distribution" in printed
    assert f"Written: {tmp_path / 'f.png'}" in printed
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "Values nearly independent of" in page
    assert "55 %" in page
    assert "All of them have the same output distribution" not in page


def test_learned_privately_with_delta(run, data, tmp_path):
    """The recorded guarantee includes the mechanism's δ."""
    out = tmp_path / "m.json"
    words = ("couple", "fit", data, *AGES, "--epsilon", "5", "--groups", "f,m", "--delta", "0.1", "--out", out)
    learning = json.loads(run(*words, "--json").out)["origin"]["learning"]
    assert all(bound["total_variation"] >= 0.1 for bound in learning["left"])
    assert learning["left"][0]["delta"] >= 0.1
    assert "CONFIRMED" in run("verify", out).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--delta", "1.5"), "delta"),
        (("--delta", "1e-12"), "delta"),
        (("--delta", "0.1", "--objective", "worst"), "objective"),
        (("--frontier", "f.svg", "--objective", "worst"), "--frontier"),
        (("--frontier", "f.xyz"), ".xyz"),
        (("--frontier", "f.svg", "--plot", "f.svg"), "--frontier"),
    ],
)
def test_what_is_refused_about_delta(run, data, tmp_path, words, said):
    out = tmp_path / "m.json"
    run("couple", "fit", data, *AGES, *words, "--out", out).refused_with(said)
    assert not out.exists()


def test_categories_and_public_laws(run, data, laws, tmp_path):
    out, drawn = tmp_path / "m.json", tmp_path / "drawn.parquet"
    words = ("couple", "fit", "--laws", laws, "--value", "home", "--group", "sex", "--target", "uniform", "--out", out)
    found = json.loads(run(*words, "--json").out)
    assert (found["points"], found["metric"], found["origin"]["kind"]) == (3, "discrete", "public")
    run("couple", "apply", out, data, "--out", drawn)
    assert pyarrow.parquet.read_table(drawn).column_names == ["home"]
    checked = json.loads(run("couple", "check", out, "--laws", laws, "--json").out)
    assert checked["actual"]["bound"]["total_variation"] < 1e-30
    other = tmp_path / "other.csv"
    other.write_text(LAWS.replace("north,f,0.5", "north,f,0.4").replace("south,f,0.5", "south,f,0.6"), encoding="utf-8")
    actual = json.loads(run("couple", "check", out, "--laws", other, "--json").out)["actual"]
    assert 0 < actual["measured"]["total_variation"] <= actual["bound"]["total_variation"] == pytest.approx(0.1)
    assert "from their distance to the fitted ones" in " ".join(
        run("couple", "check", out, "--laws", other).out.split()
    )


def test_other_columns_and_csv(run, data, tmp_path):
    out, drawn = tmp_path / "m.json", tmp_path / "drawn.parquet"
    lines = tmp_path / "people.csv"
    lines.write_text("years,who\n" + "10,0\n30,1\n90,1\n" * 5, encoding="utf-8")
    fitted = run("couple", "fit", lines, "--value", "years", "--group", "who", *AGES[4:], "--out", out)
    assert fitted.code == 0, fitted.err
    renamed = tmp_path / "renamed.csv"
    renamed.write_text("y,w\n5,1\n95,0\n", encoding="utf-8")
    done = run("couple", "apply", out, renamed, "--value", "y", "--group", "w", "--out", drawn)
    assert done.code == 0, done.err
    assert pyarrow.parquet.read_table(drawn).column_names == ["y"]
    run(
        "couple", "apply", out, renamed, "--value", "y", "--value", "w", "--out", tmp_path / "two.parquet"
    ).refused_with("value")


def test_learned_privately(run, data, tmp_path):
    out = tmp_path / "m.json"
    words = (
        "couple",
        "fit",
        data,
        *AGES,
        "--epsilon",
        "1",
        "--groups",
        "f,m",
        "--privacy-unit",
        "person",
        "--out",
        out,
    )
    found = json.loads(run(*words, "--json").out)
    learning = found["origin"]["learning"]
    assert (found["origin"]["kind"], learning["epsilon"], learning["person"]) == ("private", 1.0, "person")
    left = learning["left"]
    deltas = [one["delta"] for one in left]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] < deltas[0] < 1
    assert all(one["delta"] <= one["total_variation"] for one in left)
    for shown in (run(*words, "--force").out, run("couple", "check", out).out):
        assert "used epsilon 1 (privacy unit: all rows with the same person)" in " ".join(shown.split())
        assert "not recorded in a ledger" in " ".join(shown.split())
    homes = ("--value", "home", "--group", "sex", "--points", "north,south,east", "--groups", "f,m")
    assert run("couple", "fit", data, *homes, "--epsilon", "1", "--out", out, "--force").code == 0


def test_sampled_laws(run, data, tmp_path):
    out = tmp_path / "m.json"
    run("couple", "fit", data, *AGES, "--out", out)
    few, many = (
        json.loads(run("couple", "check", out, "--samples", n, "--json").out)["sampled"] for n in (1000, 10**6)
    )
    assert many["total_variation"] < few["total_variation"] < 1
    run("couple", "check", out, "--samples", "0").refused_with("samples")


def test_the_laws_of_a_table(run, data, tmp_path):
    out = tmp_path / "m.json"
    run("couple", "fit", data, *AGES, "--out", out)
    same = json.loads(run("couple", "check", out, "--data", data, "--json").out)["actual"]
    assert same["measured"]["total_variation"] < 1e-15
    private = (*AGES, "--epsilon", "1", "--groups", "f,m")
    run("couple", "fit", data, *private, "--out", out, "--force")
    near = json.loads(run("couple", "check", out, "--data", data, "--json").out)["actual"]
    assert 0 < near["measured"]["total_variation"] <= near["bound"]["total_variation"] < 0.1
    laws = tmp_path / "laws.csv"
    laws.write_text(LAWS, encoding="utf-8")
    run("couple", "check", out, "--data", data, "--laws", laws).refused_with("laws")


def test_any_channel(run, tmp_path):
    channel, laws = tmp_path / "channel.csv", tmp_path / "laws.csv"
    channel.write_text("0.75,0.25\n0.25,0.75\n", encoding="utf-8")
    laws.write_text("point,group,mass\n0,a,1\n1,b,1\n", encoding="utf-8")
    found = json.loads(run("couple", "check", channel, "--laws", laws, "--json").out)
    assert found["measured"]["total_variation"] == pytest.approx(0.5)
    assert found["measured"]["max"] == pytest.approx(np.log(3))
    assert "Epsilon between any two inputs" in run("couple", "check", channel, "--laws", laws).out
    run("couple", "check", channel).refused_with("laws")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--value", "lat", "--group", "sex"), "--grid"),
        (("--value", "home", "--group", "home"), "must be another column than --value"),
        (("--value", "home", "--group", "lat"), "text or integers"),
        (("--value", "home", "--group", "flag"), "cast"),
        (("--value", "home", "--group", "six"), "did you mean 'sex'"),
        (("--value", "hom", "--group", "sex"), "did you mean 'home'"),
        (("--value", "home", "--value", "age", "--group", "sex"), "2 columns need --grid"),
        (("--value", "home", "--group", "sex", "--bounds", "0,1"), "--bins"),
        (("--value", "home", "--group", "sex", "--bins", "3", "--bounds", "0,1"), "numeric"),
        (("--value", "home", "--group", "sex", "--metric", "euclidean"), "discrete"),
        (("--value", "home", "--group", "sex", "--target", "x"), "barycenter"),
        (("--value", "home", "--group", "sex", "--objective", "least"), "objective"),
        (("--value", "home", "--group", "sex", "--epsilon", "1"), "groups"),
        (("--value", "home", "--group", "sex", "--epsilon", "1", "--groups", "f,m"), "--points: is required"),
        (("--value", "home", "--group", "sex", "--groups", "f,x"), "groups without rows"),
        (("--value", "home", "--group", "sex", "--groups", "f,f"), "repetitions"),
        (("--value", "home", "--group", "sex", "--groups", "f"), "at least 2"),
        (("--value", "home", "--group", "sex", "--plot", "x.gif"), ".png"),
        (("--value", "home", "--group", "sex", "--table", "t"), "table"),
        (("--value", "home", "--group", "sex", "--privacy-unit", "who"), "who"),
        ((*AGES, "--epsilon", "nan", "--groups", "f,m"), "epsilon"),
        ((*AGES, "--epsilon", "-1", "--groups", "f,m"), "epsilon"),
        ((*AGES, "--points", "a"), "--points: cannot be combined"),
        ((*AGES, "--bounds", "0,5"), "--bins: needs one --value column and one --bounds LOW,HIGH; 1 and 2 are given"),
        ((*AGES, "--grid", "2x2"), "--bins"),
        ((*AGES[:-1], "0"), "bounds"),
        ((*AGES[:-1], "0,nan"), "finite"),
        ((*AGES[:-1], "5,1"), "lower bound first"),
        ((*AGES[:-2], "--bounds", "a,b"), "two numbers"),
        (("--value", "age", "--group", "sex", "--bins", "0", "--bounds", "0,1"), "cells"),
        (("--value", "age", "--group", "sex", "--bins", "x", "--bounds", "0,1"), "bins"),
        ((*MAP[:7], "3by4", *MAP[8:]), "ROWSxCOLUMNS"),
        ((*MAP[:7], "0x4", *MAP[8:]), "cells"),
        ((*MAP, "--metric", "manhattan"), "cityblock"),
    ],
)
def test_nonsense_for_fit(run, data, tmp_path, words, said):
    run("couple", "fit", data, *words, "--out", tmp_path / "m.json").refused_with(said)
    assert not (tmp_path / "m.json").exists()


def test_numbers_in_a_csv_file_are_no_categories(run, tmp_path):
    data, out = tmp_path / "people.csv", tmp_path / "m.json"
    data.write_text("wage,sex\n8.31,f\n8.32,m\n30,f\n8.31,m\n", encoding="utf-8")
    words = ("couple", "fit", data, "--value", "wage", "--group", "sex", "--out", out)
    run(*words).refused_with("--value wage", "has only numbers", "--bins N --bounds LOW,HIGH")
    assert run(*words, "--metric", "discrete").code == 0
    assert run(*words, "--bins", "3", "--bounds", "0,30", "--force").code == 0


def test_rows_that_are_not_used_are_counted(run, data, tmp_path):
    words = ("couple", "fit", data, *HOMES, "--points", "north,south", "--out", tmp_path / "m.json")
    home = pyarrow.parquet.read_table(data)["home"].to_pylist()
    assert f"{home.count('east'):,} of 2,000 rows were not used" in run(*words).out


def test_an_unknown_column_is_called_by_its_option(run, data, tmp_path):
    words = ("couple", "fit", data, "--out", tmp_path / "m.json")
    run(*words, "--value", "home", "--group", "xyzzy").refused_with("--group: no column 'xyzzy' in", "'lat', 'lon'")
    shown = run(*words, "--value", "age", "--group", "xyzzy", "--bins", "3", "--bounds", "0,100")
    shown.refused_with("--group: no column 'xyzzy'")
    assert "tightrope_cell" not in shown.err
    run(*words, *HOMES, "--privacy-unit", "xyzzy").refused_with("--privacy-unit: no column")


def test_learned_distributions_without_a_guarantee_are_named(run, tmp_path):
    data = tmp_path / "few.parquet"
    table = pyarrow.table({"age": [float(i) for i in range(40)], "sex": ["f", "m"] * 20})
    pyarrow.parquet.write_table(table, data)
    words = ("--value", "age", "--group", "sex", "--bins", "40", "--bounds", "0,40", "--groups", "f,m")
    shown = run("couple", "fit", data, *words, "--epsilon", "0.1", "--out", tmp_path / "m.json").out
    assert "No guarantee for group membership: the estimated distributions are too inaccurate" in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("point,group,mass\n", "the table has no lines"),
        ("", "columns"),
        ("place,group,mass\na,b,1\n", "columns"),
        ("point,group,mass\na,f,0.5\n", "sum of the distribution"),
        ("point,group,mass\na,f,1.5\nb,f,-0.5\n", "not negative"),
        ("point,group,mass\na,f,nan\n", "not negative"),
        ("point,group,mass\na,f,x\n", "mass"),
        ("point,group,mass\na,f\n", "line 2 of"),
        ("point,group,mass\na,f,1,5\na,m,1\n", "three entries"),
        ("point,group,mass\na,f,1\na,f,0\n", "occurs twice"),
        ("point,group,mass\na,f,1\n", "at least 2"),
    ],
)
def test_laws_that_are_none(run, tmp_path, text, said):
    place = tmp_path / "laws.csv"
    place.write_text(text, encoding="utf-8")
    words = ("couple", "fit", "--laws", place, "--value", "v", "--group", "g", "--out", tmp_path / "m.json")
    run(*words).refused_with(said)


def test_what_contradicts(run, data, laws, tmp_path):
    words = ("couple", "fit", "--value", "home", "--group", "sex", "--out", tmp_path / "m.json")
    run(*words).refused_with("DATA")
    run(*words, data, "--laws", laws).refused_with("DATA")
    run(*words, "--laws", laws, "--epsilon", "1").refused_with("epsilon")
    run(*words, "--laws", tmp_path / "none.csv").refused_with("none.csv", "cannot be read")
    run(*words, tmp_path / "none.parquet").refused_with("exists")
    run(*words, "--laws", laws, "--bins", "3", "--bounds", "0,1").refused_with("point")


def test_noisy_laws_are_no_shares_of_samples(run, data, tmp_path):
    out = tmp_path / "m.json"
    run("couple", "fit", data, *AGES, "--groups", "f,m", "--epsilon", "1", "--out", out)
    run("couple", "check", out, "--samples", "1000").refused_with("noise")
    assert "do not publish the results" in " ".join(run("couple", "check", out, "--data", data).out.split())


@pytest.mark.parametrize(
    ("value", "shown"), [(0.16617, "0.1662"), (0.12341, "0.1235"), (2.1e-39, "2.1e-39"), (math.inf, "∞"), (0, "0")]
)
def test_bounds_are_shown_rounded_up(value, shown):
    assert _format_number(float(value)) == shown


def test_what_is_written_overwrites_nothing_that_is_read(run, data, laws, tmp_path):
    before = data.read_bytes()
    told = ("couple", "fit", data, *AGES)
    run(*told, "--out", data).refused_with("would replace the input")
    run(*told, "--out", tmp_path).refused_with("is a folder")
    run(*told, "--out", tmp_path / "a.svg", "--plot", tmp_path / "a.svg").refused_with("a different file for each")
    run("couple", "fit", "--laws", laws, *HOMES, "--out", laws).refused_with("would replace the input")
    assert data.read_bytes() == before
    assert laws.read_text(encoding="utf-8") == LAWS
    assert sorted(tmp_path.iterdir()) == sorted([data, laws])


def test_a_picture_that_cannot_be_is_known_before_the_laws_are_learned(run, data, tmp_path):
    (tmp_path / "file").touch()
    told = ("--groups", "f,m", "--epsilon", "1", "--out", tmp_path / "m.json", "--plot", tmp_path / "file" / "a.svg")
    run("couple", "fit", data, *AGES, *told).refused_with("folder")
    assert not (tmp_path / "m.json").exists()


def test_a_secret_file_takes_no_rights_from_the_one_before(run, data, tmp_path):
    out, picture = tmp_path / "m.json", tmp_path / "a.svg"
    for path in (out, picture):
        path.touch(mode=0o666)
    run("couple", "fit", data, *AGES, "--out", out, "--plot", picture, "--force")
    assert {path.stat().st_mode & 0o077 for path in (out, picture)} == {0}


def test_where_draws_go_is_checked_before_any_work(run, data, tmp_path):
    """Neither the mechanism nor the table is there: what is said first is what was read first."""
    nowhere, taken = tmp_path / "none.json", tmp_path / "taken.parquet"
    taken.touch()
    run("couple", "apply", nowhere, data, "--out", tmp_path / "drawn.csv").refused_with(".parquet")
    run("couple", "apply", nowhere, data, "--out", taken).refused_with("exists already")
    run("couple", "apply", nowhere, data, "--out", tmp_path / "drawn.parquet").refused_with("mechanism")


def test_files_that_are_none(run, data, laws, tmp_path):
    out, drawn = tmp_path / "m.json", tmp_path / "drawn.parquet"
    run("couple", "fit", "--laws", laws, "--value", "home", "--group", "sex", "--out", out)
    run("couple", "check", tmp_path / "none.json").refused_with("mechanism")
    run("couple", "check", data).refused_with("not a mechanism file")
    run("couple", "check", out, "--laws", data).refused_with("not a CSV file")
    short = tmp_path / "short.csv"
    short.write_text("point,group,mass\nnorth,f,1\n", encoding="utf-8")
    run("couple", "check", out, "--laws", short).refused_with("groups")
    short.write_text("point,group,mass\nnorth,f,1\nwest,m,1\n", encoding="utf-8")
    run("couple", "check", out, "--laws", short).refused_with("west")
    run("couple", "apply", out, data, "--out", tmp_path / "drawn.csv").refused_with(".parquet")
    run("couple", "apply", out, data, "--keep", "sex", "--out", drawn).refused_with("keep")
    run("couple", "apply", out, data, "--value", "age", "--out", drawn).refused_with("column")
    run("couple", "apply", out, data, "--group", "home", "--out", drawn).refused_with("unknown groups")
    run("couple", "apply", out, tmp_path / "none.parquet", "--out", drawn).refused_with("exists")
    changed = json.loads(out.read_text(encoding="utf-8"))
    changed["target"][:2] = changed["target"][1::-1]
    out.write_text(json.dumps(changed), encoding="utf-8")
    run("couple", "apply", out, data, "--out", drawn).refused_with("fit again")
    assert not drawn.exists()


@pytest.mark.parametrize("command", ["fit", "apply", "check"])
def test_help_has_an_example(run, command):
    shown = run("couple", command, "--help").out
    assert f"tightrope couple {command}" in shown
    assert "Example" in shown


def test_a_mechanism_is_not_replaced_unless_asked(run, data, tmp_path):
    out = tmp_path / "m.json"
    assert run("couple", "fit", data, *AGES, "--out", out).code == 0
    before = out.read_text(encoding="utf-8")
    run("couple", "fit", data, *AGES, "--target", "uniform", "--out", out).refused_with("--force overwrites it")
    assert out.read_text(encoding="utf-8") == before
    assert run("couple", "fit", data, *AGES, "--target", "uniform", "--out", out, "--force").code == 0
    assert out.read_text(encoding="utf-8") != before
