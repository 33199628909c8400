"""`python -m tinote.cli` is the `tinote` command."""

import sys

from tinote.cli import main

sys.exit(main())
