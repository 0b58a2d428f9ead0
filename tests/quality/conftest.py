"""Double precision where exact agreement is claimed."""

import jax
import pytest


@pytest.fixture(scope="module")
def float64():
    """The whole module in double precision."""
    with jax.enable_x64(True):
        yield
