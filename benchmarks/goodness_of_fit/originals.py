"""The programs that the ports stand for, from clones in a folder: ksdagg (NumPy and JAX) and kernel-gof (autograd, future)."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.goodness_of_fit import ports


def calls(folder: Path, seed: int = 0) -> dict[str, Callable[[Any, Any, Any], Any]]:
    """One test each, given x, s and a key that none of them uses."""
    agg, kgof = _ksdagg(folder), _kgof(folder)
    tests = {
        "original: KSDAgg, NumPy": lambda x, s, key: agg[0](_double(x), _double(s)),
        "original: KSDAgg, JAX": lambda x, s, key: jax.block_until_ready(agg[1](jnp.asarray(x), jnp.asarray(s))),
    }
    return tests | {f"original: {test}": _quiet(run, seed) for test, run in _kernel_gof(kgof).items()}


def compared(folder: Path, x: Any, s: Any) -> dict[str, Any]:
    """Ports and originals on the same samples: largest differences where randomness is shared, rejections where it is not."""
    agg, kgof = _ksdagg(folder), _kgof(folder)
    gaps: dict[str, list[float]] = {}
    rejected: dict[str, list[int]] = {}

    def note(what: str, gap: float) -> None:
        gaps.setdefault(what, []).append(float(gap))

    def count(test: str, port: Any, original: Any) -> None:
        both = rejected.setdefault(test, [0, 0])
        both[0] += int(port)
        both[1] += int(original)

    with jax.enable_x64(True):
        for i, (one, score) in enumerate(zip(_double(x), _double(s), strict=True)):
            n = len(one)
            decision, parts = agg[0](one, score, return_dictionary=True, seed=i)
            signs = np.random.RandomState(i).choice([1.0, -1.0], size=(ports.B1 + ports.B2 + 1, n))  # as the original draws
            signs = jnp.asarray(np.delete(signs, ports.B1, 0).T)
            pairs = ports.Pairs.all(jnp.asarray(one), jnp.asarray(score))
            found = _aggregated(pairs, signs)
            single = [parts[f"Single test {k + 1}"] for k in range(ports.KERNELS)]
            u = np.array([part["KSD"] for part in single])
            note("KSDAgg: U_i, relative", np.max(np.abs(np.asarray(found.u) - u) / np.max(np.abs(u))))
            note("KSDAgg: p_i", np.max(np.abs(np.asarray(found.p) - [part["p-value"] for part in single])))
            note("KSDAgg: threshold of p", abs(float(found.threshold) - single[0]["p-value threshold"]))
            count("KSDAgg, shared signs", found.rejected, decision)
            stein = {
                "KSD, IMQ": (kgof["kernel"].KIMQ(b=-0.5, c=1.0), lambda p: ports.imq(p.r2, 1.0)),
                "KSD, Gauss": (
                    kgof["kernel"].KGauss(float(m := ports.median_square(pairs.r2))),
                    lambda p, m=m: ports.gauss(p.r2, m),
                ),
            }
            given = _density(kgof, one, score)
            for test, (kernel, jet) in stein.items():
                h = (
                    kgof["goftest"]
                    .KernelSteinTest(given, kernel)
                    .compute_stat(kgof["data"].Data(one), return_ustat_gram=True)[1]
                )
                ours = np.asarray(pairs.stein(jet(pairs)))
                note(f"{test}: u, relative", np.max(np.abs(ours - h)) / np.max(np.abs(h)))
            linear = kgof["goftest"].LinearKernelSteinTest(given, stein["KSD, Gauss"][0]).perform_test(kgof["data"].Data(one))
            half = ports.Pairs.halves(jnp.asarray(one), jnp.asarray(score))
            note("linear KSD, Gauss: p", abs(float(ports.linear_p(half, ports.gauss(half.r2, m))) - linear["pvalue"]))
            v = one[:5]
            tested = kgof["goftest"].FSSD(given, kgof["kernel"].KGauss(float(m)), v)
            statistic = tested.compute_stat(kgof["data"].Data(one))
            port = n * ports.fssd(ports.features(jnp.asarray(one), jnp.asarray(score), jnp.asarray(v), m))[0]
            note("FSSD: n FSSD^2, relative", abs(float(port) - statistic) / abs(statistic))
    port_of = jax.jit(ports.rejections)
    for i, (one, score) in enumerate(zip(x, s, strict=True)):
        found = port_of(jnp.asarray(one), jnp.asarray(score), jax.random.key(i))
        for test, run in _kernel_gof(kgof).items():
            count(test, found[test], _quiet(run, i)(one, score, None))
    return {
        "samples": len(x),
        "largest differences, randomness shared": {what: max(each) for what, each in gaps.items()},
        "rejections of port and original": rejected,
    }


_aggregated = jax.jit(ports.ksdagg)


def _double(a: Any) -> Any:
    return np.asarray(a, np.float64)


def _ksdagg(folder: Path) -> tuple[Any, Any]:
    with _importing(folder / "ksdagg"):
        from ksdagg.jax import ksdagg as compiled  # pyright: ignore[reportMissingImports]
        from ksdagg.np import ksdagg as plain  # pyright: ignore[reportMissingImports]
    return plain, compiled


def _kgof(folder: Path) -> dict[str, Any]:
    with _importing(folder / "kernel-gof"):
        from kgof import data, goftest, kernel, util  # pyright: ignore[reportMissingImports]
    return {"data": data, "goftest": goftest, "kernel": kernel, "util": util}


def _density(kgof: dict[str, Any], x: Any, s: Any) -> Any:
    """A density of which nothing is known but its score at the rows of x."""
    rows = {row.tobytes(): i for i, row in enumerate(x)}

    class Known:
        def grad_log(self, at: Any) -> Any:
            return s[[rows[row.tobytes()] for row in np.ascontiguousarray(at)]]

    return Known()


def _kernel_gof(kgof: dict[str, Any]) -> dict[str, Callable[[Any, Any, int], bool]]:
    """kernel-gof's tests with the settings of its experiments (ex2), given x, s and a seed."""
    gof, kernel, util = kgof["goftest"], kgof["kernel"], kgof["util"]
    wrap = kgof["data"].Data
    median = lambda x: util.meddistance(x, subsample=1000) ** 2

    def stein(kernel_of: Callable[[Any], Any]) -> Callable[[Any, Any, int], bool]:
        def run(x: Any, s: Any, seed: int) -> bool:
            test = gof.KernelSteinTest(_density(kgof, x, s), kernel_of(x), alpha=ports.LEVEL, n_simulate=ports.DRAWS, seed=seed)
            return test.perform_test(wrap(x))["h0_rejected"]

        return run

    def linear(x: Any, s: Any, seed: int) -> bool:
        test = gof.LinearKernelSteinTest(_density(kgof, x, s), kernel.KGauss(median(x)), alpha=ports.LEVEL, seed=seed)
        return test.perform_test(wrap(x))["h0_rejected"]

    def optimised(x: Any, s: Any, seed: int) -> bool:
        p = _density(kgof, x, s)
        train, test = wrap(x).split_tr_te(tr_proportion=ports.TRAIN, seed=seed + 21)
        v = util.fit_gaussian_draw(train.data(), ports.LOCATIONS, seed=seed + 1, reg=1e-6)
        widths = median(train.data()) * 2.0 ** np.linspace(-3, 3, ports.WIDTHS)
        best, _ = gof.GaussFSSD.grid_search_gwidth(p, train, v, widths)
        bounds = {"locs_bounds_frac": 10.0, "gwidth_lb": 1e-1, "gwidth_ub": 1e4}
        v, width, _ = gof.GaussFSSD.optimize_locs_widths(
            p, train, widths[best], v, reg=ports.NOISE, max_iter=ports.ITERATIONS, tol_fun=1e-4, **bounds
        )
        null = gof.FSSDH0SimCovObs(n_simulate=ports.NULLS, seed=seed)
        return gof.FSSD(p, kernel.KGauss(width), v, null_sim=null, alpha=ports.LEVEL).perform_test(test)["h0_rejected"]

    return {
        "KSD, IMQ": stein(lambda x: kernel.KIMQ(b=-0.5, c=1.0)),
        "KSD, Gauss": stein(lambda x: kernel.KGauss(median(x))),
        "linear KSD, Gauss": linear,
        "FSSD-opt": optimised,
    }


def _quiet(run: Callable[[Any, Any, int], bool], seed: int) -> Callable[[Any, Any, Any], bool]:
    def silent(x: Any, s: Any, key: Any) -> bool:
        with contextlib.redirect_stdout(io.StringIO()):
            return bool(run(_double(x), _double(s), seed))

    return silent


@contextlib.contextmanager
def _importing(folder: Path) -> Iterator[None]:
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; expected a clone of {folder.name}; give --originals its parent")
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
