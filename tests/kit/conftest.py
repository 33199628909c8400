"""How much LLVM optimises the kernels of these tests."""

import pytest
from hypothesis import settings

# Many more examples: `--hypothesis-profile=long`.
settings.register_profile("long", max_examples=4000)


@pytest.fixture(autouse=True)
def quickly(most_machine_code_is_made_quickly: None) -> None:
    """The kernels of the kit are right or wrong before LLVM sees them."""
