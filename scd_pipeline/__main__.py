"""`python -m scd_pipeline` is `scd`."""

import sys

from scd_pipeline.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
