"""How the kernels of these tests are compiled."""

import pytest
from hypothesis import settings

# Many more examples: `--hypothesis-profile=long`.
settings.register_profile("long", max_examples=4000)


@pytest.fixture(autouse=True)
def quickly(
    most_machine_code_is_made_quickly: None, shared_code: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels of the kit are right or wrong before LLVM sees them, and the first test of a run that needs one
    compiles it for all.
    """
    for name, value in shared_code.items():
        monkeypatch.setenv(name, value)
