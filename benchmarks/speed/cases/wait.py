"""A user's first result, in this very process: seconds and compilations, as JSON. Imports nothing before the clock runs.

python benchmarks/speed/cases/wait.py run|infer
"""

import time

BEGAN = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402


def wait(call: str) -> dict[str, float]:
    """Seconds to import, to the first result and to the second of the same shape; and what was compiled for each."""
    import jax
    import jax.numpy as jnp

    import polystein as ps

    imported = time.perf_counter()
    compiled: list[float] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event.endswith("backend_compile_duration") else None
    )
    like = jnp.zeros(10)
    target = ps.Target.of(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), like)

    def once(seed: int) -> Any:
        key = jax.random.key(seed)
        if call == "run":
            return jax.block_until_ready(ps.run(ps.MKSVGD(), target, particles=100, steps=1, key=key).particles)
        return jax.block_until_ready(ps.infer(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), like, key=key).particles)

    once(0)
    first, programs = time.perf_counter(), len(compiled)
    once(1)
    return {
        "import": imported - BEGAN,
        "first": first - imported,
        "second": time.perf_counter() - first,
        "programs compiled": programs,
        "compiled by the second": len(compiled) - programs,
    }


if __name__ == "__main__":
    print(json.dumps(wait(sys.argv[1])))
