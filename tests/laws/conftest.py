"""Double precision for the laws that are exact, and the profile under which mutants are run."""

import hypothesis
import jax
import pytest

# Nobody looks at the counterexample of a mutant, so none is made small.
hypothesis.settings.register_profile(
    "mutants",
    hypothesis.settings.get_profile("ci"),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


@pytest.fixture(scope="module")
def float64():
    """The whole module in double precision."""
    with jax.enable_x64(True):
        yield
