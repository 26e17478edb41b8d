"""`scd init`: a declaration guessed from a sample, and a project that loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scd_pipeline.cli import app as cli
from scd_pipeline.cli.inference import guess_declaration, parse_sample
from scd_pipeline.declaration import Dimension, ScdType, load_dimensions, parse
from scd_pipeline.errors import UsageError

CSV = """\
shop,number,name,opened,rent,area,Contact Email,zip,note
a,1,X,2020-01-01,10.50,3000000000,x@example.com,01234,
b,2,X,2021-01-01,9.255,1,y@example.com,11234,
a,3,Y,2021-01-01,9,2,,01234,
"""


def guess(file: str, text: str) -> Dimension:
    sample = parse_sample(file, text)
    (dimension,) = parse(guess_declaration(sample, f"landing/{sample.name}_{{date}}.csv"))
    return dimension


def test_a_declaration_is_guessed_from_values_and_names() -> None:
    dimension = guess("Our Shops_2024-03-01.csv", CSV)
    assert (dimension.name, dimension.key_names) == ("dim_our_shops", ("number",))
    attributes = {a.name: (a.data_type.ddl(), a.scd, a.personal) for a in dimension.attributes}
    assert attributes == {
        "shop": ("string", ScdType.ADD_ROW, False),
        "name": ("string", ScdType.ADD_ROW, False),
        "opened": ("date", ScdType.ADD_ROW, False),
        "rent": ("decimal(38,3)", ScdType.ADD_ROW, False),
        "area": ("bigint", ScdType.ADD_ROW, False),
        "contact_email": ("string", ScdType.OVERWRITE, True),
        "zip": ("string", ScdType.ADD_ROW, False),
        "note": ("string", ScdType.ADD_ROW, False),
    }


def test_two_columns_are_the_key_if_no_single_one_is_unique() -> None:
    assert guess("a.csv", "x,y,z\n1,1,1\n1,2,1\n2,1,1\n").key_names == ("x", "y")
    with pytest.raises(UsageError) as error:
        guess("a.csv", "x\n1\n1\n")
    assert error.value.code == "BUSINESS_KEY_NOT_GUESSED"


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_of_a_sample_is_declared(separator: str) -> None:
    dimension = guess("a.csv", 'id,name\n1,"x,y"\n2,z\n'.replace(",name", f"{separator}name").replace(",", separator))
    assert (dimension.key_names, dimension.attribute_names) == (("id",), ("name",))
    assert dict(dimension.sources[0].snapshot.options) == {"sep": separator}  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "a,b\n", "a,a\n1,2\n", '{"a": 1}\n', '[{"a": 1}]'])
def test_a_sample_without_rows_or_names_is_rejected(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_sample("a.csv", text)
    assert (error.value.code, error.value.location) == ("SAMPLE_NOT_READABLE", "a.csv")


def test_no_file_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == 2
    assert "[PROJECT_FILE_EXISTS]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.slow
def test_a_new_project_loads_and_passes_its_tests(
    spark: object, remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark
    sample = tmp_path / "shops_2024-03-01.csv"
    sample.write_text(CSV, encoding="utf-8")
    folder = tmp_path / "my shops"
    assert cli.main(["init", str(folder), "--from", str(sample)]) == 0
    assert load_dimensions(folder / "declarations")[0].name == "dim_shops"
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCD_REMOTE", remote)
    for name in ("SCD_DECLARATIONS", "SCD_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["load"]) == 0
    assert "1 accepted; rows: 3 opened" in capsys.readouterr().out
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(tests, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
