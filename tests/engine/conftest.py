"""Where many small programs run once each, half of the time goes if the compiler does not optimise."""

from collections.abc import Iterator

import jax
import pytest

OPTIMISED = ("test_run", "test_checkpoint", "test_methods")  # bits and long runs, as users have them


@pytest.fixture(autouse=True, scope="module")
def _plain_compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    """For the whole module, its fixtures included."""
    jax.config.update("jax_disable_most_optimizations", not request.module.__name__.endswith(OPTIMISED))
    yield
    jax.config.update("jax_disable_most_optimizations", False)
