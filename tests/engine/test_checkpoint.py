"""Checkpoints: killed at any moment, a run goes on bit for bit; what is another run's or damaged is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from polystein import MKSVGD, RBF, SVGD, Bank, Function, Target, Tiled, run
from polystein.geometry import Diagonal
from polystein.weights import Argmax, Ascent
from tests.engine.common import ADAM, SGD, SVGD_RBF, gaussian, plain, same_bits, steps_of

SCRIPT = Path(__file__).with_name("killed.py")


def start(file: Path, result: Path, kind: str, steps: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT, file, result, kind, str(steps)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> list[int]:
    """The chunk edges a process reported until its end."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return [int(line) for line in out.split()]


@pytest.mark.parametrize("kind", ["exact", "minibatched"])
def test_killed_and_resumed_is_the_same_bit_for_bit(kind: str, tmp_path: Path, rng: np.random.Generator):
    """SIGKILL after a random number of chunks and a random part of the next, again and again, then to the end."""
    steps = 600
    finish(start(tmp_path / "whole.npz", tmp_path / "whole_result.npz", kind, steps))
    file, result, edges = tmp_path / "killed.npz", tmp_path / "result.npz", [0]
    for _ in range(2 if kind == "exact" else 1):
        process = start(file, result, kind, steps)
        assert process.stdout is not None
        for _ in range(rng.integers(1, 15)):
            edges.append(int(process.stdout.readline()))
        try:
            process.wait(rng.uniform(0, 0.02))  # a moment that nobody chose
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert not result.exists()
    last = finish(start(file, result, kind, steps))
    assert last[0] > edges[-1]  # it went on from where it was
    assert last[-1] == steps
    with np.load(result) as ours, np.load(tmp_path / "whole_result.npz") as whole:
        assert int(ours["rows"]) == steps
        same_bits(dict(ours), dict(whole))


def resumable(file: Path, **other: Any) -> Any:
    """A run of 12 steps that writes to ``file``, with something changed."""
    given = {
        "method": SVGD_RBF,
        "target": plain(),
        "particles": 6,
        "steps": 12,
        "key": jax.random.key(1),
        "optim": ADAM,
        "chunk": 4,
        "checkpoint": file,
    } | other
    return run(given.pop("method"), given.pop("target"), **given)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The checkpoint of 12 steps."""
    file = tmp_path_factory.mktemp("written") / "c.npz"
    resumable(file)
    return file.read_bytes()


@pytest.fixture
def file(written: bytes, tmp_path: Path) -> Path:
    """A copy of it, to do harm to."""
    (tmp_path / "c.npz").write_bytes(written)
    return tmp_path / "c.npz"


def test_more_steps_from_a_finished_run(file: Path):
    """What a run of 12 steps left, a run of 20 continues; with chunks of another size, too."""
    seen: list[int] = []
    more = resumable(file, steps=20, chunk=3, callbacks=[lambda p: seen.append(p.step)])
    whole = resumable(file.with_name("other.npz"), steps=20)
    assert seen == [15, 18, 20]
    same_bits((more.particles, steps_of(more.trace)), (whole.particles, steps_of(whole.trace)))


def test_nothing_left_to_do(file: Path):
    again, plain = resumable(file), resumable(file.with_name("other.npz"))
    same_bits((again.particles, steps_of(again.trace)), (plain.particles, steps_of(plain.trace)))
    assert again.status.kind == "completed"


def test_fewer_steps_than_stored_are_refused(file: Path):
    with pytest.raises(ValueError, match=r"12 .*expected.*;"):
        resumable(file, steps=8)


def test_after_an_interrupt(file: Path):
    def interrupt(p: Any) -> None:
        raise KeyboardInterrupt

    other = file.with_name("other.npz")
    assert resumable(other, callbacks=[interrupt]).status.kind == "interrupted"
    same_bits(resumable(other).particles, resumable(file).particles)


def kernel(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.exp(-jnp.sum((x - y) ** 2))


ANOTHER = {
    "method": ({"method": SVGD()}, "method"),
    "bandwidth": ({"method": SVGD(RBF(2.5))}, "method"),
    "kernel": ({"method": SVGD(Function(kernel))}, "method"),
    "optimiser": ({"optim": SGD}, "optimiser"),
    "learning rate": ({"optim": optax.adam(0.051)}, "optimiser"),
    "momentum": ({"optim": optax.adam(0.05, b2=0.99)}, "optimiser"),
    "schedule": ({"optim": optax.adam(optax.piecewise_constant_schedule(0.05, {100: 0.1}))}, "optimiser"),
    "density": ({"target": gaussian(mean=[1.0, -0.5001])}, "density"),
    "dimension": ({"target": gaussian(mean=[0.0] * 3, covariance=np.eye(3))}, "particles"),
    "key": ({"key": jax.random.key(2)}, "key"),
    "particles": ({"particles": 7}, "particles"),
    "start": ({"particles": jnp.linspace(0.0, 1.0, 12).reshape(6, 2)}, "start"),
    "pairs": ({"pairs": Tiled(2, 3)}, "pairs"),
    "geometry": ({"geometry": Diagonal(jnp.zeros(2), jnp.array([1.0, 2.0]))}, "geometry|density|start"),
}


@pytest.mark.parametrize("name", ANOTHER)
def test_another_run_is_refused_by_name(name: str, file: Path, written: bytes):
    changed, word = ANOTHER[name]
    with pytest.raises(ValueError, match=rf"another .*({word}).*expected.*; delete"):
        resumable(file, steps=16, **changed)
    assert file.read_bytes() == written  # nothing is lost by asking


PAIRS_OF_METHODS = {
    "rule": (MKSVGD(Bank.dyadic(1.0, 0, 1)), MKSVGD(Bank.dyadic(1.0, 0, 1), Argmax())),
    "bank": (MKSVGD(Bank.dyadic(1.0, 0, 1)), MKSVGD(Bank.dyadic(2.0, 0, 1))),
    "order": (MKSVGD(Bank.dyadic(1.0, 0, 1), lagged=True), MKSVGD(Bank.dyadic(1.0, 0, 1), lagged=False)),
    "optimiser within": tuple(MKSVGD(Bank.dyadic(1.0, 0, 1), Ascent(optax.adagrad(rate))) for rate in (0.05, 0.5)),
}


@pytest.mark.parametrize("name", PAIRS_OF_METHODS)
def test_another_method_is_refused(name: str, tmp_path: Path):
    first, second = PAIRS_OF_METHODS[name]
    resumable(tmp_path / "c.npz", method=first, steps=4)
    with pytest.raises(ValueError, match=r"another .*method.*expected.*; delete"):
        resumable(tmp_path / "c.npz", method=second, steps=4)


class Object:
    """A kernel that is no plain function, whose repr has its address in it."""

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return kernel(x, y)


def test_addresses_are_no_part_of_the_configuration(tmp_path: Path):
    """A new process puts things elsewhere."""
    resumable(tmp_path / "c.npz", method=SVGD(Function(Object())), steps=4)
    resumable(tmp_path / "c.npz", method=SVGD(Function(Object())), steps=4)


def test_other_data_are_another_density(tmp_path: Path):
    def of(rows: jax.Array) -> Target:
        return Target.minibatched(lambda m: -(m**2), lambda m, y: -0.5 * (y - m) ** 2, rows, 0.0, batch=2)

    rows = jnp.arange(8.0)
    resumable(tmp_path / "c.npz", target=of(rows))
    with pytest.raises(ValueError, match="another density"):
        resumable(tmp_path / "c.npz", target=of(rows.at[:].add(0.01)), steps=16)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_truncated_file_is_refused(share: float, file: Path, written: bytes):
    file.write_bytes(written[: int(share * len(written))])
    with pytest.raises(ValueError, match=r"c\.npz is damaged.*expected.*;"):
        resumable(file)


def test_flipped_bytes_are_refused_or_harmless(file: Path, written: bytes, rng: np.random.Generator):
    expected, complaints = resumable(file), []
    for place in rng.choice(len(written), 40, replace=False):
        damaged = bytearray(written)
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            found = resumable(file)
        except ValueError as refused:
            complaints.append(str(refused))
        else:
            same_bits(found.particles, expected.particles)
    assert complaints
    assert all("expected" in complaint for complaint in complaints)


def test_a_posterior_is_no_checkpoint(file: Path):
    resumable(file).save(file)
    with pytest.raises(ValueError, match=r"posterior.*expected 'checkpoint'"):
        resumable(file)


def test_no_folder(tmp_path: Path):
    with pytest.raises((OSError, ValueError), match=r"no folder.*expected.*;"):
        resumable(tmp_path / "none" / "c.npz")


def test_a_folder_is_no_file(tmp_path: Path):
    with pytest.raises((OSError, ValueError), match=r"folder.*expected.*;"):
        resumable(tmp_path)


def test_leftovers_are_harmless(file: Path, written: bytes):
    """What a kill while writing leaves beside the file: half a file under another name."""
    for name in (f".c.npz.{os.getpid()}.part", ".c.npz.1.part"):
        file.with_name(name).write_bytes(written[:100])
    assert resumable(file, steps=16).status.kind == "completed"


def test_write_that_fails_leaves_the_older_file(file: Path, written: bytes, monkeypatch: pytest.MonkeyPatch):
    def full(handle: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        resumable(file, steps=16)
    assert file.read_bytes() == written
    assert [p.name for p in file.parent.iterdir()] == ["c.npz"]
