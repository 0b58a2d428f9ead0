"""Fixtures of the tests: randomness that depends on nothing but the test's name, unchecked calls, the shared folder."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import jaxtyping
import numpy as np
import pytest

collect_ignore = ["mutants.py"]  # a program, run by `make mutants`

hypothesis.settings.register_profile(
    "local",
    deadline=None,  # the first call of a shape compiles
    max_examples=20,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("local"), derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def _seed(request: pytest.FixtureRequest) -> int:
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture
def key(request: pytest.FixtureRequest) -> jax.Array:
    """A jax key of this test's own."""
    return jax.random.key(_seed(request))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A numpy generator of this test's own."""
    return np.random.default_rng(_seed(request))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Calls into polystein without run-time type checks, as users make them: what the library itself says of bad input."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data and reference posteriors that POLYSTEIN_SHARED names."""
    folder = os.environ.get("POLYSTEIN_SHARED")
    if not folder:
        pytest.skip("POLYSTEIN_SHARED is unset; it names the folder of reference data that this test reads")
    return Path(folder)
