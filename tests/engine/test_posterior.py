"""Posteriors: draws in the user's form, summaries, and files that come back as they were or not at all."""

from __future__ import annotations

import io
import json
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polystein import MKSVGD, Bank, CorrelationCholesky, Ordered, Positive, Posterior, Simplex, Target, load, run
from polystein.posterior import Status
from tests.engine.common import SGD, SVGD_RBF, Pair, plain, same_bits


class Parameters(NamedTuple):
    """A tree of one's own."""

    a: Any
    b: Any


TREES = {
    "scalar": 1.5,
    "vector": jnp.arange(3.0),
    "dict": {"b": jnp.zeros((2, 2)), "a": 0.0},
    "list": [1.0, jnp.zeros(2)],
    "tuple": (jnp.zeros((1, 2)), 1.0),
    "none": {"a": None, "b": 1.0},
    "nested": {"z": [1.0, (jnp.zeros(2), {"k": jnp.ones((2, 1)), "j": 2.0})], "a": (), "m": {}},
}
OWN = {
    "module": Pair(jnp.zeros(2), {"x": 1.0}),
    "named tuple": Parameters(0.0, jnp.ones(3)),
    "keys that are no words": {1: 0.0, 2: jnp.zeros(2)},
    "ordered dict": OrderedDict([("b", 1.0), ("a", 2.0)]),
}


def posterior(like: Any, n: int = 4, **more: Any) -> Posterior:
    """Made by hand, so that nothing is compiled: each leaf of the tree with other numbers in it."""
    values = jax.tree.map(lambda a: jnp.zeros((n, *jnp.shape(a)), jnp.asarray(a).dtype), like)
    leaves, structure = jax.tree.flatten(values)
    rng = np.random.default_rng(1)
    values = jax.tree.unflatten(structure, [jnp.asarray(rng.normal(size=a.shape), a.dtype) for a in leaves])
    flat = jnp.concatenate([a.reshape(n, -1) for a in jax.tree.leaves(values)], 1)
    trace = {"phi": np.arange(3.0, dtype=np.float32), "weights": np.full((3, 2), 0.5, np.float32)}
    return Posterior(flat, -flat, values, trace, Status("completed", "3 steps"), **more)


def same(a: Posterior, b: Posterior) -> None:
    """Everything but the bank, bit for bit."""
    same_bits((a.particles, a.scores, a.values, a.trace), (b.particles, b.scores, b.values, b.trace))
    assert a.status == b.status


# Draws ----------------------------------------------------------------------------------------------------------------

LIKE = {
    "sigma": jnp.ones(2),
    "mix": jnp.full(3, 1 / 3),
    "cuts": jnp.arange(3.0),
    "corr": {"L": jnp.eye(3), "free": 0.0},
}
CONSTRAIN = {"sigma": Positive(), "mix": Simplex(), "cuts": Ordered(), "corr": {"L": CorrelationCholesky()}}


@pytest.fixture(scope="module")
def constrained() -> tuple[Target, Posterior]:
    """A run with every kind of constraint."""

    def density(p: Any) -> jax.Array:
        return -sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))

    target = Target.of(density, LIKE, constrain=CONSTRAIN)
    return target, run(MKSVGD(Bank.dyadic(1.0, 0, 1)), target, particles=7, steps=6, key=jax.random.key(0), optim=SGD)


def test_draws_are_constrained_with_a_leading_axis(constrained: tuple[Target, Posterior]):
    target, post = constrained
    draws = post.draws()
    assert post.particles.shape == (7, 2 + 2 + 3 + 3 + 1)
    assert jax.tree.map(jnp.shape, draws) == jax.tree.map(lambda a: (7, *jnp.shape(a)), LIKE)
    assert (draws["sigma"] > 0).all()
    assert (draws["mix"] > 0).all()
    np.testing.assert_allclose(draws["mix"].sum(-1), 1, rtol=1e-5)
    assert (np.diff(draws["cuts"]) > 0).all()
    lower = draws["corr"]["L"]
    np.testing.assert_allclose(np.diagonal(lower @ np.swapaxes(lower, 1, 2), axis1=1, axis2=2), 1, rtol=1e-5)
    for i in (0, 6):
        one = target.constrained(post.particles[i])
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=1e-5, atol=1e-6), draws, one)


def test_predict_is_a_loop(constrained: tuple[Target, Posterior]):
    _, post = constrained
    predict = lambda p: {"y": p["sigma"][:, None] * p["mix"][None], "k": p["corr"]["free"]}
    found = post.predict(predict)
    assert found["y"].shape == (7, 2, 3)
    for i in range(7):
        one = predict(jax.tree.map(lambda a, i=i: a[i], post.draws()))
        np.testing.assert_allclose(found["y"][i], one["y"], rtol=1e-6)
        np.testing.assert_allclose(found["k"][i], one["k"], rtol=1e-6)


def test_scores_are_those_of_the_particles(constrained: tuple[Target, Posterior]):
    target, post = constrained
    np.testing.assert_allclose(post.scores, target.score(post.particles), rtol=1e-4, atol=1e-5)


def test_scores_of_a_minibatched_target_are_of_all_rows(key: jax.Array):
    target = Target.minibatched(lambda m: 0.0, lambda m, y: -0.5 * (y - m) ** 2, jnp.arange(10.0), 0.0, batch=2)
    post = run(SVGD_RBF, target, particles=5, steps=2, key=key, optim=SGD)
    np.testing.assert_allclose(post.scores, target.score(post.particles), rtol=1e-5)


# Names and summary ----------------------------------------------------------------------------------------------------


def test_names():
    assert posterior(TREES["scalar"]).names == ["x"]
    assert posterior(TREES["vector"]).names == ["x[0]", "x[1]", "x[2]"]
    assert posterior(TREES["dict"]).names == ["a", "b[0,0]", "b[0,1]", "b[1,0]", "b[1,1]"]
    assert posterior(TREES["nested"]).names == ["z.0", "z.1.0[0]", "z.1.0[1]", "z.1.1.j", "z.1.1.k[0,0]", "z.1.1.k[1,0]"]
    assert posterior(OWN["module"]).names == ["first[0]", "first[1]", "second.x"]
    assert posterior(OWN["named tuple"]).names == ["a", "b[0]", "b[1]", "b[2]"]


@pytest.mark.parametrize("name", [*TREES, *OWN])
def test_summary_is_a_row_per_number(name: str):
    post = posterior((TREES | OWN)[name], n=50)
    summary = post.summary()
    assert [row[0] for row in summary.rows] == post.names
    flat = np.asarray(post.particles, np.float64)
    table = np.array([row[1:] for row in summary.rows])
    np.testing.assert_allclose(table[:, 0], flat.mean(0), rtol=1e-12)
    np.testing.assert_allclose(table[:, 1], flat.std(0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(table[:, 2:].T, np.quantile(flat, [0.05, 0.5, 0.95], axis=0), rtol=1e-12)


def test_summary_prints_and_renders(constrained: tuple[Target, Posterior]):
    _, post = constrained
    summary = post.summary()
    text, page = str(summary), summary._repr_html_()
    assert repr(summary) == text
    assert "completed: 6 steps" in text
    lines = text.splitlines()
    assert len({len(line) for line in lines[: 2 + len(summary.rows)]}) == 1  # the table is aligned
    for name in summary.header[1:] + [row[0] for row in summary.rows]:
        assert name in text
        assert f">{name}<" in page
    for sentence in summary.advice:
        assert f"- {sentence}" in text
    assert page.count("<tr>") == page.count("</tr>") == 1 + len(summary.rows)


def test_html_is_escaped():
    post = posterior({"<b>": 0.0})
    assert "<b>" not in post.summary()._repr_html_()
    assert "&lt;b&gt;" in post.summary()._repr_html_()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_summary_of_few_particles(n: int):
    assert str(posterior({"a": 0.0, "b": jnp.zeros(3)}, n=n).summary())


def test_summary_of_a_run_without_steps(key: jax.Array):
    post = run(MKSVGD(Bank.dyadic(1.0, 0, 1)), plain(), particles=5, steps=0, key=key)
    assert "0 steps" in str(post.summary())


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
def test_plain_trees_come_back(name: str, tmp_path: Path):
    post = posterior(TREES[name])
    post.save(tmp_path / "p.npz")
    same(load(tmp_path / "p.npz"), post)
    same(load(str(tmp_path / "p.npz"), like=TREES[name]), post)


@pytest.mark.parametrize("name", OWN)
def test_own_trees_come_back_through_like(name: str, tmp_path: Path):
    post = posterior(OWN[name])
    post.save(tmp_path / "p.npz")
    same(load(tmp_path / "p.npz", like=OWN[name]), post)
    with pytest.raises(ValueError, match=r"expected like=.*; pass"):
        load(tmp_path / "p.npz")


def test_shapes_without_values_serve_as_like(tmp_path: Path):
    post = posterior(OWN["module"])
    post.save(tmp_path / "p.npz")
    same(load(tmp_path / "p.npz", like=jax.eval_shape(lambda: OWN["module"])), post)


WRONG_LIKE = {
    "fewer": {"a": jnp.zeros(2)},
    "more": {"a": jnp.zeros(2), "b": 0.0, "c": 0.0},
    "other shapes": {"a": jnp.zeros(3), "b": 0.0},
}


@pytest.mark.parametrize("name", WRONG_LIKE)
def test_wrong_like_is_refused(name: str, tmp_path: Path):
    posterior({"a": jnp.zeros(2), "b": 0.0}).save(tmp_path / "p.npz")
    with pytest.raises(ValueError, match=r"expected.*like.*;"):
        load(tmp_path / "p.npz", like=WRONG_LIKE[name])


def test_a_real_run_comes_back(constrained: tuple[Target, Posterior], tmp_path: Path):
    _, post = constrained
    post.save(tmp_path / "p.npz")
    again = load(tmp_path / "p.npz")
    same(again, post)
    assert again.names == post.names
    assert again.summary().rows == post.summary().rows


def test_float64_comes_back(tmp_path: Path):
    with jax.enable_x64(True):
        post = posterior({"a": jnp.zeros(2), "b": jnp.zeros((), jnp.float32)})
        assert post.values["a"].dtype == jnp.float64
        post.save(tmp_path / "p.npz")
        same(load(tmp_path / "p.npz"), post)


def test_float64_is_not_silently_cut_to_float32(tmp_path: Path):
    with jax.enable_x64(True):
        posterior({"a": jnp.zeros(2)}).save(tmp_path / "p.npz")
    with pytest.raises(ValueError, match=r"float64.*expected.*;.*x64"):
        load(tmp_path / "p.npz")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> tuple[Posterior, bytes]:
    """A posterior whose arrays are longer than a reader's buffer, and its file."""
    post, file = posterior({"a": jnp.zeros(3), "b": 0.0}, n=600), tmp_path_factory.mktemp("big") / "p.npz"
    post.save(file)
    return post, file.read_bytes()


def outcome(file: Path, content: bytes, post: Posterior) -> str:
    """What becomes of a damaged file: refused in a sentence, or the same content; anything else fails."""
    file.write_bytes(content)
    try:
        found = load(file)
    except ValueError as refused:
        return str(refused)
    same(found, post)
    return "same"


def test_truncated_files_are_refused(big: tuple[Posterior, bytes], tmp_path: Path):
    post, whole = big
    lengths = {*range(0, len(whole), max(1, len(whole) // 60)), *range(len(whole) - 30, len(whole)), 1, 2, 3, 4, 5, 6}
    complaints = {outcome(tmp_path / "p.npz", whole[:length], post) for length in lengths}
    assert all("p.npz" in c and "expected" in c and ";" in c for c in complaints)


@pytest.mark.parametrize("mask", [1, 2, 32, 255])
def test_flipped_bytes_are_refused_or_harmless(mask: int, big: tuple[Posterior, bytes], tmp_path: Path):
    """Every 50th byte, and every byte of what is no array: the headers of members and the directory at the end."""
    post, whole = big
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        starts = [info.header_offset for info in archive.infolist()]
    headers = {place for start in starts for place in range(start, start + 180, 3)}
    places = {*range(0, len(whole), 50), *headers, *range(whole.rindex(b"PK\x05\x06") - 250, len(whole))}
    complaints = set()
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= mask
        complaints.add(outcome(tmp_path / "p.npz", bytes(damaged), post))
    assert all("expected" in c for c in complaints - {"same"})


def test_a_shorter_shape_in_a_header_is_refused(big: tuple[Posterior, bytes], tmp_path: Path):
    """A reader that stops early never gets to the checksum."""
    post, whole = big
    for place in (whole.index(b"(600, 4)") + 1, whole.rindex(b"(600, 3)") + 1):
        damaged = bytearray(whole)
        damaged[place] = ord("1")
        assert "damaged" in outcome(tmp_path / "p.npz", bytes(damaged), post)


def test_what_is_no_such_file(tmp_path: Path):
    file = tmp_path / "p.npz"
    with pytest.raises(FileNotFoundError, match=r"not there.*expected.*;"):
        load(file)
    for content in (b"", b"hello", b"PK\x03\x04", b"\x93NUMPY\x01\x00"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"damaged.*expected.*;"):
            load(file)
    np.save(tmp_path / "a.npy", np.zeros(3))
    np.savez(tmp_path / "b.npz", a=np.zeros(3))
    for other in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match=r"damaged or was not written by polystein.*expected.*;"):
            load(tmp_path / other)


class Trap:
    """Unpickled, it would leave a mark."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("member", ["particles", "values0", "manifest", "other"])
def test_loading_never_unpickles(member: str, tmp_path: Path):
    file, mark = tmp_path / "p.npz", tmp_path / "mark"
    posterior({"a": jnp.zeros(2)}).save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    trap = np.array([Trap(mark)], dtype=object)
    np.savez(file, **(arrays | {member: trap}))
    with pytest.raises(ValueError, match=r"damaged.*expected.*;"):
        load(file)
    assert not mark.exists()
    with np.load(file, allow_pickle=True) as archive:
        archive[member]
    assert mark.exists()  # the trap works


EDITS = {
    "no object": lambda m: "x",
    "null": lambda m: None,
    "no status": lambda m: {k: v for k, v in m.items() if k != "status"},
    "status too long": lambda m: m | {"status": ["a", "b", "c"]},
    "no such leaf": lambda m: m | {"tree": {"leaf": 7}},
    "negative leaf": lambda m: m | {"tree": {"leaf": -1, "x": 0}},
    "two kinds": lambda m: m | {"tree": {"list": [], "dict": {}}},
    "another kind of node": lambda m: m | {"tree": {"eval": "1"}},
    "dtypes of others": lambda m: m | {"dtypes": {}},
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_manifest_is_refused(name: str, tmp_path: Path):
    file = tmp_path / "p.npz"
    posterior({"a": jnp.zeros(2)}).save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    manifest = json.dumps(EDITS[name](json.loads(arrays["manifest"].tobytes())))
    np.savez(file, **(arrays | {"manifest": np.frombuffer(manifest.encode(), np.uint8)}))
    with pytest.raises(ValueError, match=r"p\.npz.*expected.*;"):
        load(file)


def test_save_replaces_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "p.npz"
    posterior({"a": 0.0}).save(file)
    before = file.read_bytes()
    with pytest.raises(FileNotFoundError, match=r"no folder.*expected.*;"):
        posterior({"a": 0.0}).save(tmp_path / "none" / "p.npz")

    def fail(*given: Any, **more: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="no space"):
        posterior({"a": 0.0, "b": 0.0}).save(file)
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["p.npz"]


def test_bfloat16_comes_back(tmp_path: Path):
    """npz does not know it."""
    post = posterior({"a": jnp.zeros(2)})
    post = eqx.tree_at(lambda p: p.values, post, {"a": post.values["a"].astype(jnp.bfloat16)})
    post.save(tmp_path / "p.npz")
    same(load(tmp_path / "p.npz"), post)
