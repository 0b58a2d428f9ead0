"""How good are my draws? A NumPyro run checked, a wrong one found out, draws thinned, runs recombined.

Run it from an empty folder: python sample_quality.py; it needs pip install 'polystein[numpyro,plot]'.
"""

# %% A model
# A straight line through twenty points with noise of unknown size: three parameters, one of them positive.

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import polystein as ps
from polystein.report.drawing import PALETTE, style

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(1)
t = np.linspace(-1, 1, 20)
y = 1.0 + 2.0 * t + 0.5 * rng.normal(size=t.size)


def model(t, y):
    a = numpyro.sample("a", dist.Normal(0.0, 10.0))
    b = numpyro.sample("b", dist.Normal(0.0, 10.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(a + b * t, sigma), obs=y)


def nuts(t, y, seed):
    mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=500, num_chains=2, chain_method="sequential", progress_bar=False)
    mcmc.run(jax.random.key(seed), t, y)
    return mcmc.get_samples(group_by_chain=True)


right = nuts(t, y, 0)

# %% The density that the draws should be of
# It is written for the parameters as they are saved, and knows nothing of the sampler. A constant factor does not matter: only
# its score, the gradient of its log, is used. sigma is positive, and the density does not vanish at zero, where Stein's
# identity would fail; so a bijection is named, and the draws are judged by log sigma. The log-Jacobian is added there.


def log_density(p):
    prior = -0.5 * (p["a"] ** 2 + p["b"] ** 2) / 100 - 0.5 * p["sigma"] ** 2
    residual = (jnp.asarray(y) - p["a"] - p["b"] * jnp.asarray(t)) / p["sigma"]
    return prior - 0.5 * jnp.sum(residual**2) - t.size * jnp.log(p["sigma"])


constrain = {"sigma": ps.Positive()}

# %% A right run
# Stein ratios of one, no shift, a test that finds nothing. Errors allow for the autocorrelation of the chains.

good = ps.check(right, log_density, constrain=constrain)
print(good, end="\n\n")

# %% A wrong run
# The same sampler, but the rows were read twice: nothing in R-hat or the effective number of draws shows it, for the chains
# have converged well, to something else. The scores do: the draws are too narrow.

wrong = nuts(np.tile(t, 2), np.tile(y, 2), 1)
bad = ps.check(wrong, log_density, constrain=constrain)
print(bad, end="\n\n")

# %% Both in one table
# One kernel for both, so that the discrepancies can be compared, and the significance of their difference.

print(ps.compare({"wrong": wrong, "right": right}, log_density, constrain=constrain), end="\n\n")

# %% Thinning
# Forty draws that stand for the posterior better than forty taken at even distances do: ``thin`` and ``ksd`` work in free
# coordinates, which a Target makes.

target = ps.Target.of(log_density, {"a": 0.0, "b": 0.0, "sigma": 1.0}, constrain=constrain)
free = lambda run: jax.vmap(target.unconstrained)({name: a.reshape(-1) for name, a in run.items()})
x = free(right)
kept = ps.thin(x, target, 40)
every = x[:: len(x) // 40][:40]
kernel = ps.IMQ(ps.kernels.MatrixSVGDMedian()(x))
ksd = lambda rows: float(ps.ksd(rows, target, kernel, statistic=ps.V()).value)
print(f"KSD² of 40 draws: thinned {ksd(x[kept.indices]):.3g}, evenly spaced {ksd(every):.3g}", end="\n\n")

# %% Recombination
# The wrong run is not lost: of both runs together, weights are found under which they stand for the posterior. Its draws lie
# where the posterior is, too narrow as they are, so that they get some of the weight.

together = ps.recombine({"right": x[::4], "wrong": free(wrong)[::4]}, target)
print(together)
mean, weighted = np.mean(np.asarray(x), 0), np.asarray(together.weights @ together.samples)
print("mean of the right run", mean.round(3), "weighted mean of both", weighted.round(3))

# %% A picture

with style() as plt:
    figure, axes = plt.subplots(1, 3, figsize=(8, 2.6), sharex=True, sharey=True)
    shown = {"right": x, "wrong": free(wrong), "40 thinned draws": x[kept.indices]}
    for axis, (name, rows), colour in zip(axes, shown.items(), PALETTE, strict=False):
        rows = np.asarray(rows)
        axis.scatter(rows[:, 1], rows[:, 2], s=6 if len(rows) > 100 else 14, color=colour, linewidths=0, alpha=0.5)
        axis.set_title(name)
        axis.set_xlabel("b")
    axes[0].set_ylabel("log sigma")
    figure.savefig("sample_quality.png", dpi=90, metadata={"Software": None})
