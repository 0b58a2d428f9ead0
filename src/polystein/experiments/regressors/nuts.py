"""What the exact posterior scores, by NumPyro's NUTS on all training rows: the reference for the small sets; it takes long."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from polystein.experiments.regressors.base import AbstractRegressor, Predictive, Progress, Standardised
from polystein.models import Network, Rows
from polystein.target import Target


class NUTS(AbstractRegressor):
    """The No-U-Turn sampler on the network and prior of the particle methods; the noise is that of each draw.

    **Arguments:**

    - ``hidden``: units of the hidden layer.
    - ``warmup``, ``draws``: steps of adaptation, and after it.
    - ``kept``: draws that predict, at equal distances.
    - ``depth``: of trees of leapfrog steps, at the most.
    """

    label: ClassVar[str] = "NUTS"
    trials: ClassVar[int] = 10
    on_request: ClassVar[bool] = True

    hidden: int = eqx.field(static=True, default=50)
    warmup: int = eqx.field(static=True, default=500)
    draws: int = eqx.field(static=True, default=1000)
    kept: int = eqx.field(static=True, default=200)
    depth: int = eqx.field(static=True, default=8)

    def quickly(self) -> NUTS:
        """Twenty short trees."""
        return NUTS(self.hidden, 10, 10, 5, 3)

    def fit(
        self,
        x: Float[Array, "S N p"],
        y: Float[Array, "S N"],
        test_x: Float[Array, "S T p"],
        keys: Any,
        *,
        progress: Progress | None = None,
    ) -> Predictive:
        """One split after another, by one program."""
        try:
            import numpyro
            from numpyro import distributions, infer
        except ImportError as missing:
            raise ImportError("NUTS needs numpyro, which is not installed; run: pip install 'polystein[numpyro]'") from missing
        units, model = Standardised.of(x, y), Network(x.shape[2], hidden=self.hidden)
        rows, test = Rows(units.features(x), units.targets(y)), units.features(test_x)
        free = Target.of(model.log_prior, model.sample_prior(jax.random.key(0)), constrain=model.constrain)

        def density(rows: Rows) -> None:
            u = numpyro.sample("u", distributions.ImproperUniform(distributions.constraints.real, (), (free.dim,)))
            numpyro.factor("p", model.target(rows).log_density(jnp.asarray(u)))

        kernel = infer.NUTS(density, max_tree_depth=self.depth)
        chain = infer.MCMC(kernel, num_warmup=self.warmup, num_samples=self.draws, progress_bar=False, jit_model_args=True)
        means, sds = [], []
        for i, key in enumerate(keys):
            start = model.particles(jax.random.fold_in(key, 0), 1)[0]
            chain.run(jax.random.fold_in(key, 1), Rows(rows.x[i], rows.y[i]), init_params={"u": start})
            u = chain.get_samples()["u"][:: max(self.draws // self.kept, 1)]
            mean, gamma = _predicted(model, free, u, test[i])
            means.append(mean)
            sds.append(jnp.broadcast_to(1 / jnp.sqrt(gamma)[:, None], mean.shape))
            if progress:
                progress((i + 1) / len(y))
        return units.raw(jnp.stack(means), jnp.stack(sds))


@eqx.filter_jit
def _predicted(
    model: Network, free: Target, u: Float[Array, "M d"], x: Float[Array, "T p"]
) -> tuple[Float[Array, "M T"], Float[Array, "M"]]:
    """f_W and gamma of every draw."""
    params = jax.vmap(free.constrained)(u)
    return jax.vmap(lambda one: model.mean(one, x))(params), params["gamma"]
