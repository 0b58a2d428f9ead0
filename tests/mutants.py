"""Do the laws see what they are there to see? Plants one error at a time in a copy and runs the law that should fail.

    python tests/mutants.py [names ...]

Exit status 1 if a mutant survives, 2 if the laws do not hold on the source as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "conftest.py", "pyproject.toml")


class Mutant(NamedTuple):
    """An error: ``old``, found exactly once in the files whose path ends in ``file``, becomes ``new``; ``law`` should fail."""

    old: str
    new: str
    law: str
    file: str = ".py"


FORMULA = "test_kernels.py::test_derivatives_are_those_of_the_formula[2-{}]"
MEAN = "test_stein.py::test_mean_of_stein_kernel_under_the_target_is_zero[gaussian-{}]"
MUTANTS = {
    # the operator
    "repulsion attracts": Mutant("weighted_differences(2 *", "weighted_differences(-2 *", FORMULA.format("RBF")),
    "factor 2 of the repulsion lost": Mutant(
        "weighted_differences(2 *", "weighted_differences(1 *", "test_methods.py::test_svgd_is_the_mean_drift"
    ),
    "d for 2d in the trace": Mutant("(tile.rs + tile.dim)", "(tile.rs + tile.dim / 2)", MEAN.format("RBF")),
    "sign of the cross terms": Mutant("(tile.rs + tile.dim)", "(tile.dim - tile.rs)", MEAN.format("IMQ")),
    "wrong score in the third term": Mutant("sx @ jet.dy + jet.trace", "sy @ jet.dy + jet.trace", MEAN.format("Product")),
    "operator transposed": Mutant("jax.jacobian(phi)(x).T", "jax.jacobian(phi)(x)", "test_stein.py::test_stein_identity"),
    "operator without divergence": Mutant(
        "+ jax.jacobian(phi)(x).T", "", "test_stein.py::test_divergence_falls_at_the_rate_of_the_operator"
    ),
    # kernels
    "IMQ with beta for beta - 1": Mutant("(self.beta - 1) * first", "self.beta * first", FORMULA.format("IMQ")),
    "RBF with sigma for h": Mutant("jnp.exp(-r2 / self.h)", "jnp.exp(-r2 / (2 * self.h))", FORMULA.format("RBF")),
    "Matern at 0: twice the derivative": Mutant("-a2 / 6 * (1 + ar)", "-a2 / 3 * (1 + ar)", FORMULA.format("Matern52")),
    "Matern: first for second derivative": Mutant("a2 / 4 * ar * decay", "-a2 / 2 * decay", FORMULA.format("Matern32")),
    "autodiff of a kernel stops at the first": Mutant("along_kernel + second * dr2", "along_kernel", FORMULA.format("RBF")),
    "root without a safe derivative": Mutant(
        "jnp.where(t > 0, jnp.sqrt(positive_t), 0)",
        "jnp.sqrt(t)",
        "test_kernels.py::test_gradients_in_hyperparameters[Matern32]",
    ),
    "inner product: trace in wrong units": Mutant("+ tile.dim / length**2", "+ tile.dim", FORMULA.format("Linear")),
    "product rule with one cross term": Mutant("f.dy @ g.dx + f.dx @ g.dy", "f.dy @ g.dx", FORMULA.format("Product")),
    # banks
    "ladder upside down": Mutant(
        "stack(ladder[::-1])", "stack(ladder)", "test_banks.py::test_a_mixed_bank_is_the_list_of_its_kernels"
    ),
    "ladder squares k itself": Mutant("jnp.expm1(-r2", "-1 + jnp.exp(-r2", "test_banks.py::test_ladders_in_float32[Octaves]"),
    "every family gets the first weights": Mutant(
        "w[end - len(family) : end]", "w[: len(family)]", "test_banks.py::test_a_mixed_bank_is_the_list_of_its_kernels"
    ),
    "median rule by log n": Mutant(
        "_median(_distances(x, self.points)) / math.log(x.shape[0] + 1)",
        "_median(_distances(x, self.points)) / math.log(x.shape[0])",
        "test_bandwidths.py::test_rules_are_their_published_formulas[LiuWang]",
    ),
    # statistics
    "U divided as V": Mutant(
        "jnp.sum(self.others, 1) / (self.count * (self.count - 1))",
        "jnp.sum(self.others, 1) / self.count**2",
        "test_statistics.py::test_v_is_u_and_the_mean_diagonal",
    ),
    "diagonal left in U": Mutant(
        "jnp.where(tile.same, 0, jnp.ones_like(tile.r2))",
        "jnp.ones_like(tile.r2)",
        "test_statistics.py::test_unbiased_statistics_estimate_the_closed_form[null-U]",
    ),
    "diagonal dropped from V": Mutant(
        "self.others + self.diagonal", "self.others", "test_statistics.py::test_bias_of_v_is_the_mean_diagonal"
    ),
    "one half twice": Mutant(
        "sy, sx = rows.meeting, cols.met",
        "sy, sx = rows.meeting, cols.meeting",
        "test_statistics.py::test_noisy_scores_bias_one_batch_and_not_two",
        "stein.py",
    ),
    "one half twice on the diagonal": Mutant(
        "sy, sx = rows.meeting, cols.met",
        "sy, sx = rows.meeting, cols.meeting",
        "test_statistics.py::test_noisy_scores_meet_in_no_product[LinearTime]",
        "bank.py",
    ),
    "points paired with themselves": Mutant(
        "randint(key_j, (self.size,), 1, n)",
        "randint(key_j, (self.size,), 0, n)",
        "test_statistics.py::test_unbiased_statistics_estimate_the_closed_form[null-Incomplete]",
    ),
    "one key for two draws": Mutant(
        "randint(key_j, (self.size,)",
        "randint(key_i, (self.size,)",
        "test_statistics.py::test_standard_errors_are_those_seen[null-Incomplete]",
    ),
    "standard error without its factor 4": Mutant(
        "(4 * (n - 2) * zeta_1", "((n - 2) * zeta_1", "test_statistics.py::test_standard_errors_are_those_seen[alternative-U]"
    ),
    # weights
    "printed rule without its root": Mutant(
        "maximise(jnp.sqrt(jnp.maximum(s, 0)))", "maximise(s)", "test_weights.py::test_paper_maximises_the_sum_of_norms"
    ),
    "argmax not clipped": Mutant(
        "gain = jnp.maximum(s, 0)", "gain = s", "test_weights.py::test_argmax_is_the_maximum_over_the_sphere"
    ),
    "fallback of zeros": Mutant(
        "self.fallback(s,", "0 * self.fallback(s,", "test_weights.py::test_weights_are_usable_whatever_the_sums[Argmax]"
    ),
    "unknown discrepancies believed": Mutant(
        "jnp.all(jnp.isfinite(s))", "jnp.ones((), bool)", "test_weights.py::test_weights_are_usable_whatever_the_sums[Argmax]"
    ),
    "null deviation without its 2": Mutant(
        "jnp.sqrt(2 * jnp.sum(self.squares, 1)",
        "jnp.sqrt(jnp.sum(self.squares, 1)",
        "test_weights.py::test_divisors_are_the_deviations_they_name",
    ),
    # methods
    "no 1/n": Mutant(
        "return total / self.points.count, gather",
        "return total, gather",
        "test_methods.py::test_lagged_moves_by_the_last_weights",
    ),
    "weights-first with stale weights": Mutant(
        "before = self.weights(swarm.sums(bank), before)",
        "self.weights(swarm.sums(bank), before)",
        "test_methods.py::test_order_of_weighing_and_moving",
    ),
    "a run that descends": Mutant(
        "optim.update(-velocity", "optim.update(velocity", "test_methods.py::test_a_run_of_one_particle_is_gradient_ascent"
    ),
    # pairs and numerics
    "ragged columns dropped": Mutant(
        "[block(some_rows, rest)] if rest.x.shape[0] else []", "[]", "test_pairs.py::test_tiled_is_dense[float64-7-tiles1]"
    ),
    "first block of columns twice": Mutant("a[1:], whole", "a, whole", "test_pairs.py::test_tiled_is_dense[float64-7-tiles1]"),
    "dead columns counted": Mutant(
        "jnp.where(self.cols.live[None, :], weight, 0)", "weight", "test_pairs.py::test_dead_points_are_as_if_removed[Dense]"
    ),
    "one side centred": Mutant(
        "return y - origin, x - origin",
        "return y, x - origin",
        "test_numerics.py::test_single_precision_is_close_to_double[spread_out-9]",
    ),
    "close pairs by matrix product": Mutant(
        "(r2 < CLOSE * norms) & ~same",
        "jnp.zeros_like(same)",
        "test_numerics.py::test_single_precision_is_close_to_double[two_clusters-9]",
    ),
    "order statistic off by one": Mutant("<= rank", "< rank", "test_numerics.py::test_order_statistics_are_those_of_sorting"),
}


def plant(source: Path, mutant: Mutant) -> tuple[Path, str]:
    """Write the error into the copy; the file and its text before."""
    files = [file for file in source.rglob("*.py") if file.as_posix().endswith(mutant.file)]
    count = sum(file.read_text("utf-8").count(mutant.old) for file in files)
    if count != 1:
        raise LookupError(f"found {count} times, expected once: {mutant.old}")
    file = next(file for file in files if mutant.old in file.read_text("utf-8"))
    text = file.read_text("utf-8")
    file.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    return file, text


def failure(copy: Path, *laws: str) -> str:
    """The last words of pytest where a law fails on the copy, nothing where all hold; any other trouble is raised."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    nodes = [f"tests/laws/{law}" for law in laws]
    done = subprocess.run([*command, *nodes], cwd=copy, env=environment, capture_output=True, text=True)
    last_words = (done.stdout + done.stderr)[-2000:]
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {done.returncode} on {laws}\n{last_words}")
    return last_words if done.returncode else ""


def main(names: list[str]) -> int:
    unknown = set(names) - set(MUTANTS)
    if unknown:
        print(f"no such mutant: {', '.join(sorted(unknown))}; there are: {', '.join(MUTANTS)}")
        return 2
    chosen = {name: MUTANTS[name] for name in names or MUTANTS}
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in COPIED:
            whole = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            whole(ROOT / part, copy / part)
        if fault := failure(copy, *sorted({mutant.law for mutant in chosen.values()})):
            print(f"the laws do not hold on the source as it is, so no mutant could be told from it\n{fault}")
            return 2
        for name, mutant in chosen.items():
            file, text = plant(copy / "src", mutant)
            survived = not failure(copy, mutant.law)
            file.write_text(text, "utf-8")
            survivors += survived
            print(f"{name:42} | {mutant.law:92} | {'SURVIVED' if survived else 'killed'}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
