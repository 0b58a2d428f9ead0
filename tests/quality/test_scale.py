"""Large samples: memory of the compiled sweep, and linear-time statistics at a million draws."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from polystein import IMQ, Bank, LinearTime, Points, U, ksd
from polystein.discrepancy.measures import _estimate
from polystein.gof import linear_time_test
from polystein.pairs import Tiled


def test_a_hundred_thousand_draws_of_fifty_numbers_need_little_memory():
    """What the compiled program allocates beside the points, as the compiler says: far below 2 GB, and growing as n d."""

    def temporary(n: int) -> int:
        points = Points.of(jnp.zeros((n, 50), jnp.float32), jnp.zeros((n, 50), jnp.float32))
        compiled = eqx.filter_jit(_estimate).lower(U(), Bank(IMQ(50.0)), points, Tiled()).compile()
        return compiled.compiled.memory_analysis().temp_size_in_bytes

    small, large = temporary(25_000), temporary(100_000)
    assert large < 2e8
    assert large < 4.5 * small


def test_linear_time_statistics_take_a_million_draws(rng):
    x = jnp.asarray(rng.normal(size=(1_000_000, 2)).astype(np.float32))
    found = ksd(x, -x, IMQ(2.0), statistic=LinearTime())
    assert abs(float(found.value)) < 4 * float(found.standard_error) < 0.02
    assert float(linear_time_test(x, -x).p_value) > 1e-4
    assert float(linear_time_test(x, -x - 0.1).p_value) < 1e-4
