"""Records: named by what determines them, whole or refused, and never changed."""

from __future__ import annotations

import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from polystein.experiments.records import Records, configuration, key, plain


class Recipe(eqx.Module):
    """A recipe with a little of everything."""

    h: jnp.ndarray
    width: int = 50
    rule: object = jnp.tanh


def config(trial=0, h=0.5, **more):
    return configuration("uci", "A", Recipe(jnp.float32(h)), trial=trial, seed=0, data="somewhere", checksum="ab", **more)


def test_keys_are_stable():
    """What is written today is found by the program of tomorrow: the hash of the canonical text, no address in it."""
    fixed = {"b": 1, "a": [0.5, None, "x"]}
    assert key(fixed) == key({"a": [0.5, None, "x"], "b": 1}) == "1f7c1a8a314ec180bf68"
    assert config() == config()
    assert "0x" not in json.dumps(config())


@pytest.mark.parametrize(
    "other", [{"trial": 1}, {"h": 0.25}, {"quick": True}], ids=["another trial", "another setting", "a quick run"]
)
def test_another_configuration_has_another_key(other):
    assert key(config()) != key(config(**other))


def test_a_record_comes_back_as_it_was_kept(tmp_path):
    kept = Records(tmp_path).keep(config(), {"rmse": np.float32(2.5), "curve": jnp.arange(3.0)}, 1.25)
    found = Records(tmp_path).find(config())
    assert found == kept
    assert found is not None
    assert found.result == {"rmse": 2.5, "curve": [0.0, 1.0, 2.0]}
    assert Records(tmp_path, fresh=True).find(config()) is None
    assert Records(tmp_path).find(config(trial=1)) is None


def test_packed_records_are_records(tmp_path):
    records = Records(tmp_path)
    for trial in range(3):
        records.keep(config(trial), {"rmse": 1.0 + trial}, 0.5)
    before = records.pack().read_bytes()
    for file in (tmp_path / "records").iterdir():
        file.unlink()
    again = Records(tmp_path)
    assert list(again) == list(records)
    assert again.pack().read_bytes() == before


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(b"2.5", b"1.5"),
        lambda text: b"[]",
        lambda text: b"\xff" + text,
        lambda text: b"",
        lambda text: b'{"config":{},"result":{},"seconds":1,"made":{},"sealed":"0"}',
    ],
    ids=["cut", "altered", "other", "noise", "empty", "forged"],
)
def test_a_damaged_record_is_refused_with_a_sentence_and_counts_as_missing(harm, tmp_path, capsys):
    kept = Records(tmp_path).keep(config(), {"rmse": 2.5}, 1.0)
    file = tmp_path / "records" / f"{kept.key}.json"
    file.write_bytes(harm(file.read_bytes()))
    records = Records(tmp_path)
    assert records.find(config()) is None
    said = capsys.readouterr().err
    assert file.name in said
    assert "runs again" in said
    assert said.count("\n") == 1
    records.keep(config(), {"rmse": 2.5}, 1.0)
    assert Records(tmp_path).find(config()) is not None


def test_a_record_under_another_name_is_refused(tmp_path):
    kept = Records(tmp_path).keep(config(), {"rmse": 2.5}, 1.0)
    (tmp_path / "records" / f"{kept.key}.json").rename(tmp_path / "records" / f"{key(config(1))}.json")
    assert len(Records(tmp_path)) == 0


def test_what_cannot_be_recorded_is_refused():
    with pytest.raises(TypeError, match="object is no setting"):
        plain({"a": object()})
