"""A sample judged: the words are right, right samples are left alone, every form of draws is the same sample."""

import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polystein as ps
from polystein import cli
from polystein.quality.files import read_draws
from polystein.quality.identities import FINE, NARROW, SHIFTED, WIDE, parameters
from polystein.quality.sample import Sample, sample_of

pytestmark = pytest.mark.usefixtures("float64")
MEAN, SD = np.array([1.0, -2.0, 300.0]), np.array([1.0, 0.1, 20.0])


def log_density(p):
    """Three independent normals of different scales, in two variables."""
    return -0.5 * ((p["a"] - 1.0) ** 2 + jnp.sum(((p["b"] - MEAN[1:]) / SD[1:]) ** 2))


def chains(rng: np.random.Generator, c: int = 2, n: int = 250, d: int = 3, rho: float = 0.5) -> np.ndarray:
    """Stationary autoregressions of unit variance."""
    x = rng.normal(size=(c, n, d))
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def named(z: np.ndarray) -> dict[str, np.ndarray]:
    """Standard draws in the density's units, by name."""
    x = MEAN + SD * z
    return {"a": x[..., 0], "b": x[..., 1:]}


@pytest.fixture(scope="module")
def target():
    """The same density as a Target, compiled once for the module."""
    with jax.enable_x64(True):
        return ps.Target.of(log_density, {"a": jnp.zeros(()), "b": jnp.zeros(2)})


WRONGS = {
    "right": (1.0, 0.0, FINE),
    "narrow": (0.7, 0.0, NARROW),
    "wide": (1.4, 0.0, WIDE),
    "shifted": (1.0, 0.4, SHIFTED),
    "both": (0.7, -0.5, f"{SHIFTED}, {NARROW}"),
}


@pytest.mark.parametrize(("scale", "shift", "word"), WRONGS.values(), ids=WRONGS)
def test_words_say_what_was_done_to_one_parameter(scale, shift, word, target, rng):
    z = chains(rng)
    z = (z - z.mean((0, 1))) / z.std((0, 1))  # by chance nothing is off
    z[..., 1] = scale * z[..., 1] + shift
    found = ps.check(named(z), target)
    assert [one.name for one in found.parameters] == ["a", "b[0]", "b[1]"]
    assert [one.word for one in found.parameters] == [FINE, word, FINE]
    wrong = found.parameters[1]
    np.testing.assert_allclose([wrong.ratio, wrong.shift], [scale**2, shift * scale], atol=0.02)
    assert found.fine == (word == FINE)
    assert all(part in str(found) for part in [word, "2 chains of 250 draws", "b[0]"])
    assert word in found._repr_html_()
    assert found.directions[0].word != NARROW or found.directions[0].name.startswith("b[0]")


def test_a_lost_correlation_is_seen_along_a_direction(rng):
    """Independent draws with the conditional variances of a correlated normal: every parameter's ratio is 1."""
    precision = jnp.array([[1.0, 0.9], [0.9, 1.0]])
    x = rng.normal(size=(2, 1000, 2))
    found = ps.check(x, lambda u: -0.5 * u @ precision @ u, independent=True)
    assert all(abs(one.ratio - 1) < 4 * one.ratio_error for one in found.parameters)
    narrow, wide = found.directions
    assert (narrow.word, wide.word) == (NARROW, WIDE)
    assert abs(narrow.ratio - 0.1) < 5 * narrow.ratio_error
    assert abs(wide.ratio - 1.9) < 5 * wide.ratio_error
    assert abs(abs(wide.vector[0] + wide.vector[1]) - np.sqrt(2)) < 0.05
    assert not found.fine


def test_right_samples_are_left_alone(target, rng):
    """No more verdicts than the level allows, by four binomial deviations; the parts share it."""
    level, times = 0.2, 50
    wrong = np.zeros((times, 2), bool)
    for k in range(times):
        found = ps.check(named(chains(rng, rho=0.3)), target, level=level, key=jax.random.key(k))
        words = [one.word for one in [*found.parameters, *found.directions]]
        wrong[k] = any(word != FINE for word in words), bool(found.test.rejected)
    half = level / 2
    assert (wrong.sum(0) <= times * half + 4 * np.sqrt(times * half * (1 - half))).all(), wrong.mean(0)


def test_errors_are_those_seen_over_repetitions(target, rng):
    """Ratio and shift of correlated draws vary from sample to sample as their standard errors say."""
    values, errors, times = [], [], 100
    for _ in range(times):
        found = parameters(sample_of(named(chains(rng, rho=0.6)), target), 3.0)
        values.append([[one.ratio, one.shift] for one in found])
        errors.append([[one.ratio_error, one.shift_error] for one in found])
    values, errors = np.array(values), np.array(errors)
    seen = values.std(0, ddof=1).mean(0)
    assert (abs(values.mean((0, 1)) - [1, 0]) < 4 * seen / np.sqrt(3 * times)).all()
    np.testing.assert_allclose(errors.mean((0, 1)), seen, rtol=4 / np.sqrt(2 * 3 * times))


def test_the_ksd_is_the_library_s_in_standardised_coordinates(rng):
    """Value and, for independent draws, standard error."""
    x = jnp.asarray(rng.normal(size=(500, 3)) + 0.5)
    found = ps.check(x, -x, independent=True)
    sd = x.std(0)
    z = x / sd[None]
    expected = ps.ksd(z, -x * sd[None], ps.IMQ(ps.kernels.MatrixSVGDMedian()(z)))
    np.testing.assert_allclose([found.ksd.value, found.ksd.error], [float(a) for a in expected], rtol=0.1)
    np.testing.assert_allclose(found.ksd.value, expected.value, rtol=1e-9)


def same(one: Sample, other: Sample) -> None:
    """The same draws with the same scores under the same names."""
    assert one.independent == other.independent
    for a, b in [(one.x, other.x), (one.s, other.s)]:
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_every_form_of_draws_is_the_same_sample(target, rng, tmp_path):
    arviz = pytest.importorskip("arviz_base", reason="arviz-base is not installed: pip install 'polystein[arviz]'")
    pytest.importorskip("h5py", reason="h5py is not installed: pip install 'polystein[arviz]'")
    draws = named(chains(rng, n=20))
    expected = sample_of(draws, target)
    flat = np.concatenate([draws["a"][..., None], draws["b"]], -1)
    of_vector = lambda u: log_density({"a": u[0], "b": u[1:]})
    tree = arviz.from_dict({"posterior": draws})
    objects = [(draws, log_density), (flat, of_vector), (draws, of_vector), (tree, target), (tree, log_density)]
    objects += [(tree["posterior"].to_dataset(), target), (flat, np.asarray(-(flat - MEAN) / SD**2))]
    for given, density in objects:
        same(sample_of(given, density), expected)
    one = {name: a.reshape(-1, *a.shape[2:]) for name, a in draws.items()}
    for density in (target, log_density):
        single = sample_of(one, density)
        np.testing.assert_allclose(single.x, expected.x.reshape(1, -1, 3), rtol=1e-12)
    swapped = sample_of(draws, lambda u: log_density({"a": u[2], "b": u[:2]}), variables=["b", "a"])
    assert swapped.names == ["b[0]", "b[1]", "a"]
    np.testing.assert_allclose(swapped.s, expected.s[..., [1, 2, 0]], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="expected a leading axis of draws"):
        sample_of({**draws, "b": draws["b"][..., :1]}, target)

    tree.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    np.savez(tmp_path / "draws.npz", **draws)
    np.save(tmp_path / "draws.npy", flat)
    rows = [f"{c + 1},{i},{-1.0},{','.join(map(repr, flat[c, i].tolist()))}" for c in range(2) for i in range(20)]
    (tmp_path / "draws.csv").write_text("# model\n" + "\n".join(["chain,draw,lp__,a,b[0],b[1]", *rows]))
    for c in range(2):
        stan = ["a,b.1,b.2", *(",".join(map(repr, row.tolist())) for row in flat[c])]
        (tmp_path / f"chain-{c}.csv").write_text("\n".join(stan))
    files = [[tmp_path / name] for name in ("draws.nc", "draws.npz", "draws.npy", "draws.csv")]
    files.append([tmp_path / "chain-0.csv", tmp_path / "chain-1.csv"])
    try:
        import zarr  # noqa: F401

        tree.to_zarr(tmp_path / "draws.zarr", consolidated=False)
        files.append([tmp_path / "draws.zarr"])
    except ImportError:
        pass
    for file in files:
        density = of_vector if file[0].suffix == ".npy" else log_density
        same(sample_of(read_draws(file), density), expected)


def test_a_posterior_and_its_file(target, tmp_path):
    post = ps.run(ps.SVGD(), target, particles=30, steps=20, key=jax.random.key(0))
    post.save(tmp_path / "post.npz")
    expected = ps.check(post, target)
    assert expected.sample.independent
    assert "R-hat" not in str(expected)
    for given, density in [(read_draws([tmp_path / "post.npz"]), target), (post, log_density)]:
        same(sample_of(given, density), expected.sample)


def test_constrained_parameters_are_judged_in_free_coordinates(rng):
    """Half-normal draws are right in log coordinates; an edge that nobody declared is refused if it can be seen, else named."""
    x = {"s": abs(rng.normal(size=(2, 250))), "m": rng.normal(size=(2, 250))}
    half = lambda p: -0.5 * p["s"] ** 2 - 0.5 * p["m"] ** 2
    edged = lambda p: jnp.where(p["s"] > 0, half(p), -jnp.inf)
    for density in (half, edged):
        found = ps.check(x, density, constrain={"s": ps.Positive()})
        assert found.fine, found
        assert found.parameters[0].name == "log s"
    with pytest.raises(ValueError, match=r"cut off where s is zero.*--constrain s=positive"):
        ps.check(x, edged)
    with pytest.raises(ValueError, match="log s = nan"):
        ps.check(x | {"s": x["s"] - 1e-2}, edged, constrain={"s": ps.Positive()})
    assert any("constrain={'s': ps.Positive()}" in sentence for sentence in ps.check(x, half).problems)
    wrong = ps.check({**x, "s": 2 * x["s"]}, half, constrain={"s": ps.Positive()})
    assert wrong.parameters[0].word != FINE
    parts = rng.dirichlet([2.0, 3.0, 4.0], size=(2, 250))
    powers = jnp.array([1.0, 2.0, 3.0])
    found = ps.check({"p": parts}, lambda p: jnp.sum(powers * jnp.log(p["p"])), constrain={"p": ps.Simplex()})
    assert found.fine, found
    assert [one.name for one in found.parameters] == ["free p[0]", "free p[1]"]


def test_few_effective_draws_and_chains_apart_are_no_clean_bill(target, rng):
    stuck = ps.check(named(chains(rng, rho=0.999)), target)
    assert any("too few to tell" in sentence for sentence in stuck.problems)
    apart = chains(rng)
    apart[0] += 2
    assert any("R-hat" in sentence for sentence in ps.check(named(apart), target).problems)


def test_thinning_is_said(target, rng):
    found = ps.check(named(chains(rng)), target, max_draws=250)
    assert found.test.tested == 250
    assert "every 2nd draw of each chain, 250 in all" in str(found)


MODEL = """
import jax.numpy as jnp
import polystein as ps

log_density = lambda p: -0.5 * jnp.sum(p["x"] ** 2)
vector = lambda u: -0.5 * jnp.sum(u**2)
number = 3.0
def target():
    return ps.Target.of(log_density, {"x": jnp.zeros(2)})
def three(a, b, c):
    return a
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A folder with a model and draws, right and wrong, in which we are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some_model.py").write_text(MODEL)
    (tmp_path / "broken_model.py").write_text("1 / 0\n")
    (tmp_path / "needy_model.py").write_text("import surely_not_there\n")
    z = chains(rng, 2, 300, 2)
    z = (z - z.mean((0, 1))) / z.std((0, 1))
    np.savez("right.npz", x=z)
    np.savez("wrong.npz", x=0.6 * z)
    np.savez("one.npz", x=z[:1, :1])
    np.savez("nan.npz", x=np.where(z == z[0, 5, 1], np.nan, z))
    np.savez("still.npz", x=np.stack([z[..., 0], 0 * z[..., 0] + 2.5], -1))
    np.savez("twins.npz", x=z[[0, 0]])
    np.savez("extra.npz", x=z, y=z[..., 0])
    np.savez("other.npz", x=z[..., :1])
    np.savez("whole.npz", x=np.ones((2, 300, 2), int))
    (tmp_path / "torn.npz").write_bytes(b"PK no")
    (tmp_path / "draws.txt2").write_text("1")
    (tmp_path / "words.csv").write_text("a,b\n1,2\n3,x\n")
    return tmp_path


def status(*arguments: str) -> int:
    """Of ``polystein check``."""
    return cli.main(["check", *arguments])


def test_the_command_tells_right_from_wrong(folder, capsys):
    assert status("right.npz", "--target", "some_model:log_density", "--out", "report") == 0
    said = capsys.readouterr()
    assert "nothing is wrong" in said.out
    assert "Report: report/report.html" in said.out
    page = (folder / "report" / "report.html").read_text()
    assert "These draws are fine" in page
    assert page.count("<svg") == 3
    assert {file.name for file in (folder / "report" / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("parameters", "worst", "kernels") for kind in ("svg", "png")
    }
    assert json.loads((folder / "report" / "results.json").read_text())["fine"] is True
    for named_target in ("some_model:target", "some_model.py:vector"):
        assert status("wrong.npz", "--target", named_target, "--json") == 1
        numbers = json.loads(capsys.readouterr().out)
        assert [one["word"] for one in numbers["parameters"]] == ["too narrow"] * 2
        assert numbers["p_value"] < 0.005
    assert status("extra.npz", "--target", "some_model:log_density", "--variables", "x") == 0


MISTAKES = {
    "no file": (["none.npz"], "log_density", "none.npz is not there"),
    "no kind of file": (["draws.txt2"], "log_density", "expected one of .nc"),
    "a torn file": (["torn.npz"], "log_density", "torn.npz"),
    "words": (["words.csv"], "log_density", "row 2 is '3,x'"),
    "one draw": (["one.npz"], "log_density", "1 draw of 2 numbers given; expected at least 10"),
    "nan": (["nan.npz"], "log_density", "expected finite"),
    "a constant column": (["still.npz"], "log_density", r"x\[1\] is constant \(2.5\)"),
    "the same chain twice": (["twins.npz"], "log_density", "chains 0 and 1 are identical"),
    "what the density does not know": (["extra.npz"], "log_density", "y has score 0 at every draw.*--variables"),
    "integers": (["whole.npz"], "log_density", "x has dtype int64"),
    "another dimension": (["other.npz"], "target", r"expected a leading axis of draws"),
    "different chains": (["right.npz", "extra.npz"], "log_density", "do not hold the same variables"),
    "no colon": (["right.npz"], "", "expected module:attribute"),
    "no attribute": (["right.npz"], "density", "some_model has no density.*it has log_density, vector"),
    "a number": (["right.npz"], "number", "is a float; expected a log density or a Target"),
    "three arguments": (["right.npz"], "three", "takes neither a dict"),
    "no bijection": (["right.npz", "--constrain", "x=cube"], "log_density", "'x=cube' names no bijection.*expected NAME=KIND"),
    "bijection of what is not there": (["right.npz", "--constrain", "y=positive"], "log_density", r"constrain names \['y'\]"),
    "no variable": (["right.npz", "--variables", "z"], "log_density", r"variables \['z'\] are not among the draws"),
    "a level of two": (["right.npz", "--level", "2"], "log_density", "level"),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("arguments", "name", "words"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_told_is_status_2_and_one_sentence(arguments, name, words, folder, capsys):
    assert status(*arguments, "--target", f"some_model:{name}" if name else "some_model") == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("polystein: ")
    assert said.err.count("\n") == 1
    assert re.search(words, said.err), said.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere:f", "no module nowhere.*there are broken_model, needy_model, some_model"),
        ("broken_model:f", "broken_model fails when it is imported .ZeroDivisionError"),
        ("needy_model:f", "needy_model imports surely_not_there, which is not installed"),
    ],
)
def test_modules_that_do_not_import(name, words, folder, capsys):
    assert status("right.npz", "--target", name) == 2
    assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize(("ending", "package"), [("nc", "h5py"), ("zarr", "zarr")])
def test_a_bare_install_says_what_to_install(ending, package, folder, capsys, monkeypatch):
    (folder / f"draws.{ending}").touch()
    monkeypatch.setitem(sys.modules, package, None)
    for other in ("xarray", "h5netcdf"):
        monkeypatch.setitem(sys.modules, other, sys)
    assert status(f"draws.{ending}", "--target", "some_model:log_density") == 2
    assert f"needs {package}, which is not installed; run: pip install 'polystein[arviz]'" in capsys.readouterr().err


def test_scores_that_are_not_the_density_s_are_refused(rng):
    lying = lambda u: -0.5 * jnp.sum(jax.lax.stop_gradient(u) * u)
    with pytest.raises(ValueError, match="scores disagree with the density"):
        ps.check(rng.normal(size=(50, 2)), lying)


def test_float32_that_cannot_resolve_the_draws_is_refused(rng):
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        ps.check(1e7 + rng.normal(size=(50, 1)), lambda u: -0.5 * jnp.sum((u - 1e7) ** 2))
