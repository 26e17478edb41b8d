from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "congress"


def declarations_folder(environ: Mapping[str, str]) -> Path | None:
    told = environ.get("SCD_DECLARATIONS")
    if told:
        return Path(told).absolute()
    return EXAMPLE if EXAMPLE.is_dir() else None
