"""What holds for tests and doctests alike, set before polystein or jax is first imported."""

import gc
import os

# One thread a process: pytest-xdist already fills the cores.
os.environ.setdefault("PJRT_NPROC", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {os.environ.get('XLA_FLAGS', '')}".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import install_import_hook

# Every annotation in polystein is checked at run time, shapes included, for as long as the process lives.
install_import_hook("polystein", "beartype.beartype")

jax.config.update("jax_numpy_rank_promotion", "raise")

import polystein  # noqa: E402, F401  whole, before pytest imports single modules: polystein.run is the function, not its module

# Traced programs are millions of objects, almost none of them garbage: looking for it often takes a twentieth of the time.
gc.freeze()
gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True, scope="module")
def _same_precision():
    """Tests that switch to 64 bit for good, as a command line or a tutorial does, leave the next module as it was."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(autouse=True)
def _names_in_doctests(doctest_namespace):
    """An example may use these names without importing them."""
    doctest_namespace.update(jax=jax, jnp=jnp, np=np)
