"""`tinote cache`: the disk cache of machine code."""

from __future__ import annotations

import argparse

from tinote.cli.status import FAILED
from tinote.runtime.memory import readable_size
from tinote.runtime.store import open_store


def main(options: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    return compiled_code(clear=options.action == "clear")


def compiled_code(*, clear: bool) -> int:
    """Prints what the cache on disk holds, or removes it; 1 when the folder cannot be used."""
    store = open_store()
    usage = store.clear() if clear else store.usage()
    amount = f"{usage.entries} entr{'y' if usage.entries == 1 else 'ies'}, {readable_size(usage.nbytes)}"
    if store.problem:
        print(f"the cache is not used: {store.problem}")
        return 0 if not store.limit else FAILED
    if clear:
        print(f"removed {amount} from {store.folder}")
    else:
        print(f"folder   {store.folder}")
        print(f"holds    {amount}, of at most {readable_size(store.limit)}")
    return 0
