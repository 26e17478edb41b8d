"""Any text is either loaded or rejected with its faults (S28)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scd_pipeline.declaration import parse
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.unit.test_yaml_faults import FEED, FLAT, SNAPSHOT, TWO
from scd_pipeline_tests.unit.test_yaml_files import LONG, SHORT

TEXTS = [SNAPSHOT, FEED, TWO, FLAT, SHORT, LONG]
SCALARS = [
    "",
    "no",
    "null",
    "~",
    "3",
    "-1",
    "1e400",
    "0x" + "f" * 4000,
    "9" * 5000,
    ".nan",
    "2024-02-30",
    "1:2:3",
]
SCALARS += [
    "[a]",
    "{a: b}",
    "*one",
    "&one",
    "!tag x",
    "!!int x",
    "!!binary x",
    '"\\ud800"',
    '"\\UFFFFFFFF"',
    "'",
    "|",
]
SCALARS += ["<<", "=", "%", "@", "`", "crm", "city", "6", "2", "true", "'true'", "some text", "decimal(3,9)"]
GARBAGE = [
    "\t",
    "\0",
    "\ufeff",
    "\x85",
    "\u2028",
    "\ud800",
    "\U0001f600",
    "[",
    "]",
    "{",
    "}",
    ":",
    "- ",
    "? ",
    "#",
    ",",
    "\n",
]
GARBAGE += [
    "---\n",
    "...\n",
    "%YAML 9.9\n",
    "<<: *a\n",
    "!",
    "&a ",
    "*a",
    "'",
    '"',
    "\\",
    "|\n",
    ">\n",
    "\r",
    "é",
    " " * 9,
]


def drop_line(lines: list[str], at: int, rng: random.Random) -> None:
    del lines[at]


def repeat_line(lines: list[str], at: int, rng: random.Random) -> None:
    lines.insert(rng.randrange(len(lines)), lines[at])


def swap_lines(lines: list[str], at: int, rng: random.Random) -> None:
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def change_scalar(lines: list[str], at: int, rng: random.Random) -> None:
    key, colon, _ = lines[at].rpartition(":")
    lines[at] = f"{key}{colon} {rng.choice(SCALARS)}"


def change_key(lines: list[str], at: int, rng: random.Random) -> None:
    key, colon, value = lines[at].partition(":")
    indent = key[: len(key) - len(key.lstrip())]
    lines[at] = f"{indent}{rng.choice(SCALARS)}{colon}{value}"


def delete_character(lines: list[str], at: int, rng: random.Random) -> None:
    index = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:index] + lines[at][index + 1 :]


def insert_garbage(lines: list[str], at: int, rng: random.Random) -> None:
    index = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:index] + rng.choice(GARBAGE) + lines[at][index:]


def indent(lines: list[str], at: int, rng: random.Random) -> None:
    lines[at] = rng.choice(["  ", " ", "\t"]) + lines[at]


def outdent(lines: list[str], at: int, rng: random.Random) -> None:
    lines[at] = lines[at].removeprefix("  ")


MUTATIONS: list[Callable[[list[str], int, random.Random], None]] = [
    drop_line,
    repeat_line,
    swap_lines,
    change_scalar,
    change_key,
    delete_character,
    insert_garbage,
    indent,
    outdent,
]


def mutated(rng: random.Random) -> str:
    lines = rng.choice(TEXTS).splitlines()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(MUTATIONS)(lines, rng.randrange(len(lines)), rng)
    return "\n".join(lines) + "\n"


def outcome(text: str) -> str:
    """`loaded` or `rejected`; any other error is the test's failure."""
    try:
        return "loaded" if parse(text, "c.yaml") else "empty"
    except DeclarationError as error:
        lines = str(error).encode().splitlines()
        is_one_each = all(line.startswith(b"c.yaml:") for line in lines) and len(lines) == len(error.errors)
        return "rejected" if is_one_each else f"not one line each: {error}"


@pytest.mark.parametrize("seed", range(5))
def test_mutations(seed: int) -> None:
    rng = random.Random(seed)
    outcomes = Counter(outcome(mutated(rng)) for _ in range(120))
    print(f"seed {seed}: {dict(outcomes)}")
    assert set(outcomes) == {"loaded", "rejected"}
    assert min(outcomes.values()) >= 5


def test_binary_garbage() -> None:
    rng = random.Random(0)
    outcomes = {outcome(rng.randbytes(rng.randrange(200)).decode("latin-1")) for _ in range(200)}
    assert outcomes == {"rejected"}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(alphabet=st.sampled_from(" \n\t:-[]{}&*!|>'\"%@`#,?=<~ab1.é\0\ud800"), max_size=40))
def test_any_text(text: str) -> None:
    assert outcome(text) == "rejected"


def test_aliases_do_not_multiply() -> None:
    levels = [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 30)]
    assert outcome("\n".join([SNAPSHOT.rstrip(), "a0: &a0 [x]", *levels])) == "rejected"


@pytest.mark.parametrize("depth", range(420, 500, 5))
def test_nesting_of_any_depth(depth: int) -> None:
    assert outcome(f"{FLAT}owner: {'[' * depth}{']' * depth}\n") == "rejected"
