"""Every mistake at a public entrance raises an error that says what was given, what was expected and what to do.

The library's own checks must say so, hence ``unchecked``: users do not run under the type checks that the tests add.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import polystein as ps
from polystein.kernels import (
    BlackJAX,
    LiuWang,
    MatrixSVGDMedian,
    NumPyro,
    Octaves,
    PyroPerDimension,
    Stretch,
)
from polystein.weights import Argmax, Ascent, Even, Fixed, NullDeviation, Paper, Softmax


class Case(NamedTuple):
    """A mistake, the exception it must raise, and what each of the three parts of its message must say."""

    id: str
    call: Callable[[], Any]
    exception: type[Exception]
    given: str
    expected: str
    remedy: str


X = np.linspace(-1.0, 1.5, 12, dtype=np.float32).reshape(6, 2)
NAN, INF = X.copy(), X.copy()
NAN[3, 1], INF[0, 0] = np.nan, np.inf
KEY = jax.random.key(0)


def density(x: Any) -> Any:
    """A unit normal."""
    return -0.5 * jnp.sum(x**2)


def target() -> ps.Target:
    """A unit normal in two dimensions."""
    return ps.Target.of(density, jnp.zeros(2))


def run(method: Any = None, of: Any = None, **given: Any) -> ps.Posterior:
    """A short run in which only what is given is wrong."""
    good = {"particles": 6, "steps": 2, "key": KEY}
    return ps.run(ps.SVGD() if method is None else method, target() if of is None else of, **(good | given))


# Arrays of points -----------------------------------------------------------------------------------------------------

NOT_POINTS = {
    "1d": (X[:, 0], ValueError, r"shape \(6,\)", r"\(n, d\)", r"\[:, None\]"),
    "3d": (X[None], ValueError, r"shape \(1, 6, 2\)", r"\(n, d\)", r"reshape"),
    "0d": (np.float32(1), ValueError, r"shape \(\)", r"\(n, d\)", r"reshape"),
    "no rows": (X[:0], ValueError, r"shape \(0, 2\)", r"none empty", r"reshape"),
    "no columns": (X[:, :0], ValueError, r"shape \(6, 0\)", r"none empty", r"reshape"),
    "nan": (NAN, ValueError, r"\[3, 1\] is nan", r"finite", r"drop the row"),
    "inf": (INF, ValueError, r"\[0, 0\] is inf", r"finite", r"drop the row"),
    "integers": (np.arange(12).reshape(6, 2), TypeError, r"int", r"float32 or float64", r"astype\(float\)"),
    "booleans": (X > 0, TypeError, r"bool", r"float32 or float64", r"astype\(float\)"),
    "half": (X.astype(np.float16), TypeError, r"float16", r"float32 or float64", r"astype\(float\)"),
    "complex": (X.astype(complex), TypeError, r"complex", r"float32 or float64", r"convert|\.real"),
    "objects": (X.astype(object), TypeError, r"object", r"float32 or float64", r"astype\(float\)"),
    "strings": (X.astype(str), TypeError, r"dtype <U", r"float32 or float64", r"astype\(float\)"),
    "ragged list": ([[1.0, 2.0], [3.0]], TypeError, r"dtype", r"float32 or float64", r"convert|astype"),
    "none": (None, TypeError, r"dtype|None", r"float32 or float64", r"convert|astype"),
}


def points_cases(name: str, call: Callable[[Any], Any], *, skip: tuple[str, ...] = ()) -> list[Case]:
    """Every way in which an (n, d) array may be none."""
    return [
        Case(f"{name} {id}", lambda bad=bad: call(bad), exception, given, expected, remedy)
        for id, (bad, exception, given, expected, remedy) in NOT_POINTS.items()
        if id not in skip
    ]


# Numbers --------------------------------------------------------------------------------------------------------------

NOT_POSITIVE = {
    "zero": (0.0, ValueError, r"=0", r"positive", r"first choice|try"),
    "negative": (-1.0, ValueError, r"=-1", r"positive", r"first choice|try"),
    "nan": (float("nan"), ValueError, r"=nan", r"positive", r"first choice|try"),
    "inf": (float("inf"), ValueError, r"=inf", r"positive", r"first choice|try"),
    "string": ("wide", TypeError, r"='wide'", r"positive|number", r"example|try"),
    "none": (None, TypeError, r"=None", r"positive|number", r"example|try"),
    "complex": (1 + 0j, TypeError, r"1\+0j|complex", r"positive|real", r"example|try"),
    "complex array": (jnp.asarray(1 + 1j), TypeError, r"1.*j|complex", r"positive|real", r"example|try"),
    "a function": (len, TypeError, r"len", r"positive|number", r"example|try"),
}


def positive_cases(name: str, call: Callable[[Any], Any]) -> list[Case]:
    """Every way in which a scale may be none."""
    return [
        Case(f"{name} {id}", lambda bad=bad: call(bad), exception, given, expected, remedy)
        for id, (bad, exception, given, expected, remedy) in NOT_POSITIVE.items()
    ]


def nonpositive_cases(name: str, call: Callable[[Any], Any]) -> list[Case]:
    """The commonest of them, for hyper-parameters that share their converter."""
    return [case for case in positive_cases(name, call) if case.id.endswith((" zero", " nan", " string"))]


NOT_WHOLE = {
    "float": (2.5, TypeError, r"=2\.5", r"int", r"try"),
    "round float": (20.0, TypeError, r"=20\.0", r"int", r"try"),
    "string": ("ten", TypeError, r"='ten'", r"int", r"try"),
    "none": (None, TypeError, r"=None", r"int", r"try"),
    "negative": (-3, ValueError, r"=-3", r"at least", r"try"),
}


def whole_cases(name: str, call: Callable[[Any], Any], *, skip: tuple[str, ...] = ()) -> list[Case]:
    """Every way in which a count may be none."""
    return [
        Case(f"{name} {id}", lambda bad=bad: call(bad), exception, given, expected, remedy)
        for id, (bad, exception, given, expected, remedy) in NOT_WHOLE.items()
        if id not in skip
    ]


# Things in place of others --------------------------------------------------------------------------------------------

NOT_KERNEL = {
    "class": (ps.RBF, r"RBF", r"kernel", r"RBF\(|instance|call|\(\)"),
    "number": (2.0, r"2\.0", r"kernel", r"RBF\("),
    "string": ("rbf", r"'rbf'", r"kernel", r"RBF\("),
    "plain function": (lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2)), r"lambda", r"kernel", r"Function\("),
    "none": (None, r"None", r"kernel", r"RBF\("),
}


def kernel_cases(name: str, call: Callable[[Any], Any]) -> list[Case]:
    """Every thing that is taken for a kernel."""
    return [
        Case(f"{name} {id}", lambda bad=bad: call(bad), TypeError, given, expected, remedy)
        for id, (bad, given, expected, remedy) in NOT_KERNEL.items()
    ]


def bare_laplace(x: Any, y: Any) -> Any:
    """A kernel with a bare root at x = y."""
    return jnp.exp(-jnp.linalg.norm(x - y))


def guarded_laplace(x: Any, y: Any) -> Any:
    """The same, its root guarded: no nan shows, and the second derivative at x = y is still none."""
    r2 = jnp.sum((x - y) ** 2)
    away = r2 > 0
    return jnp.exp(-jnp.where(away, jnp.sqrt(jnp.where(away, r2, 1.0)), 0.0))


ROUGH = {
    "Laplace": ps.Laplace(),
    "long Laplace": ps.Laplace(100.0),
    "Laplace in a mixture": ps.RBF() + ps.Laplace(),
    "Laplace in a product": ps.RBF() * ps.Laplace(),
    "transformed Laplace": ps.Transformed(ps.Laplace()),
    "Function with a bare root": ps.Function(bare_laplace),
    "Function with a guarded root": ps.Function(guarded_laplace),
    "Function with a root, scaled": 0.5 * ps.Function(guarded_laplace),
    "Function with a root, times RBF": ps.Function(guarded_laplace) * ps.RBF(),
    "Function of the 1-norm": ps.Function(lambda x, y: jnp.exp(-jnp.sum(jnp.abs(x - y)))),
    "Function with a root in a bank": ps.Bank(ps.RBF(), ps.Function(guarded_laplace)),
}


def rough_cases(name: str, call: Callable[[Any], Any]) -> list[Case]:
    """Kernels on which the Stein operator cannot act twice."""
    return [
        Case(
            f"{name} {id}",
            lambda kernel=kernel: call(kernel),
            ValueError,
            r"not differentiable",
            r"expected a kernel",
            r"SmoothLaplace",
        )
        for id, kernel in ROUGH.items()
    ]


def wrong_type(name: str, call: Callable[[], Any], given: str, expected: str, remedy: str) -> Case:
    """A thing of the wrong kind."""
    return Case(name, call, TypeError, given, expected, remedy)


def wrong_value(name: str, call: Callable[[], Any], given: str, expected: str, remedy: str) -> Case:
    """A thing of the right kind with a wrong value or shape."""
    return Case(name, call, ValueError, given, expected, remedy)


KERNELS = [
    *positive_cases("RBF h", lambda h: ps.RBF(h)),
    *nonpositive_cases("IMQ h", lambda h: ps.IMQ(h=h)),
    *nonpositive_cases("IMQ c", lambda c: ps.IMQ(c=c)),
    *nonpositive_cases("RationalQuadratic h", lambda h: ps.RationalQuadratic(h)),
    *nonpositive_cases("RationalQuadratic alpha", lambda a: ps.RationalQuadratic(alpha=a)),
    *nonpositive_cases("Matern32 length", lambda h: ps.Matern32(h)),
    *nonpositive_cases("Matern52 length", lambda h: ps.Matern52(h)),
    *nonpositive_cases("Laplace length", lambda h: ps.Laplace(h)),
    *nonpositive_cases("SmoothLaplace length", lambda h: ps.SmoothLaplace(h)),
    *nonpositive_cases("SmoothLaplace c", lambda c: ps.SmoothLaplace(c=c)),
    *nonpositive_cases("Linear length", lambda h: ps.Linear(length=h)),
    *nonpositive_cases("Polynomial length", lambda h: ps.Polynomial(length=h)),
    *nonpositive_cases("Octaves h_max", lambda h: Octaves(h, 3)),
    *nonpositive_cases("Stretch scale", lambda h: Stretch(h)),
    *whole_cases("Octaves size", lambda m: Octaves(1.0, m)),
    *whole_cases("Polynomial degree", lambda q: ps.Polynomial(degree=q)),
    wrong_value("IMQ beta 0", lambda: ps.IMQ(beta=0.0), r"beta=0", r"interval \(-1", r"try beta=-0\.5"),
    wrong_value("IMQ beta positive", lambda: ps.IMQ(beta=0.5), r"beta=0\.5", r"interval \(-1", r"try beta=-0\.5"),
    wrong_value("IMQ beta -1", lambda: ps.IMQ(beta=-1), r"beta=-1", r"interval \(-1", r"try beta=-0\.5"),
    wrong_value("IMQ beta nan", lambda: ps.IMQ(beta=np.nan), r"beta=nan", r"interval \(-1", r"try beta=-0\.5"),
    wrong_type("IMQ beta complex", lambda: ps.IMQ(beta=-0.5 + 0j), r"complex|0j", r"real", r"beta=|example|try"),
    wrong_value("Linear centre nan", lambda: ps.Linear(centre=[0.0, np.nan]), r"centre=.*nan", r"finite", r"0/0|look"),
    wrong_type("Linear centre string", lambda: ps.Linear(centre="mean"), r"centre='mean'", r"number", r"example|try"),
    wrong_value(
        "Linear centre of another dimension",
        lambda: ps.ksd(X, -X, ps.Linear(centre=np.zeros(3))),
        r"\(3,\)",
        r"expected .*(2|d)",
        r"centre|give|pass|use",
    ),
    wrong_value("Polynomial degree first", lambda: ps.Polynomial(0), r"degree=0", r"at least 1", r"try degree=2"),
    # a hyper-parameter with an axis would broadcast against the tile, silently where its length is the number of points
    wrong_value(
        "RBF with a vector of n bandwidths",
        lambda: ps.ksd(X, -X, ps.RBF(np.ones(6))),
        r"\(6,\)",
        r"expected .*(number|scalar|shape \(\))",
        r"Bank|Stretch",
    ),
    wrong_value(
        "RBF with a bandwidth of shape (1,)",
        lambda: ps.run(ps.SVGD(ps.RBF(np.ones(1))), target(), particles=4, steps=1, key=KEY),
        r"\(1,\)",
        r"expected .*(number|scalar|shape \(\))",
        r"Bank|Stretch|\[0\]",
    ),
    wrong_value(
        "RBF with a bandwidth per dimension",
        lambda: ps.ksd(X, -X, ps.RBF([1.0, 2.0])),
        r"\(2,\)",
        r"expected .*(number|scalar|shape \(\))",
        r"Bank|Stretch",
    ),
    # a kernel takes two points; two matrices would silently be taken for two long points
    wrong_value("RBF of matrices", lambda: ps.RBF()(jnp.asarray(X), jnp.asarray(X)), r"\(6, 2\)", r"two points", r"gram"),
    wrong_value("Linear of matrices", lambda: ps.Linear()(jnp.asarray(X), jnp.asarray(X)), r"\(6, 2\)", r"two points", r"gram"),
    wrong_value(
        "mixture of matrices",
        lambda: ps.Bank.dyadic().mix(np.ones(10))(jnp.asarray(X), jnp.asarray(X)),
        r"\(6, 2\)",
        r"two points",
        r"gram",
    ),
    wrong_value("RBF of unequal points", lambda: ps.RBF()(jnp.zeros(2), jnp.zeros(1)), r"\(1,\)", r"two points", r"gram|same"),
    wrong_type("RBF of integers", lambda: ps.RBF(0.5)(jnp.arange(2), jnp.arange(2)), r"int", r"float", r"astype|1\.0|convert"),
    wrong_type("RBF of numbers", lambda: ps.RBF()(0.0, 1.0), r"0\.0|float", r"two points", r"array|jnp"),
    wrong_value("gram of a vector", lambda: ps.RBF().gram(jnp.asarray(X[0]), jnp.asarray(X)), r"\(2,\)", r"\(n, d\)", r"None"),
    wrong_type(
        "gram of integers",
        lambda: ps.RBF(0.5).gram(jnp.arange(6).reshape(3, 2), jnp.arange(6).reshape(3, 2)),
        r"int",
        r"float",
        r"astype",
    ),
    wrong_value(
        "gram of unequal dimensions",
        lambda: ps.RBF().gram(jnp.ones((3, 2)), jnp.ones((3, 1))),
        r"\(3, 1\)|1 ",
        r"expected",
        r"same|pass|give|use",
    ),
    wrong_value("gram of nan", lambda: ps.RBF().gram(NAN, X), r"x\[3, 1\] is nan", r"finite", r"drop the row"),
    wrong_type("Product with a number", lambda: ps.Product(ps.RBF(), 2.0), r"2\.0", r"kernel", r"RBF\(|\*|scal"),
    wrong_type(
        "Product with a function", lambda: ps.Product(bare_laplace, ps.RBF()), r"bare_laplace", r"kernel", r"Function\("
    ),
    wrong_type("Transformed number", lambda: ps.Transformed(2.0), r"2\.0", r"kernel", r"RBF\("),
    wrong_type(
        "Transformed by a matrix",
        lambda: ps.Transformed(ps.RBF(), map=np.eye(2)),
        r"map|array",
        r"function|callable",
        r"lambda",
    ),
    wrong_type(
        "Transformed in numpy",
        lambda: ps.ksd(X, -X, ps.Transformed(ps.RBF(), map=lambda x: np.tanh(np.asarray(x)))),
        r"map uses the value",
        r"pure JAX",
        r"jnp in place of np",
    ),
    wrong_type(
        "Transformed by a function of two points",
        lambda: ps.Transformed(ps.RBF(), map=lambda x, y: x),
        r"'y'",
        r"a function of a point",
        r"map=lambda x",
    ),
    wrong_type("Function of one point", lambda: ps.Function(lambda x: 1.0), r"too many", r"two points", r"Function\(lambda x"),
    wrong_type(
        "Function in numpy",
        lambda: ps.ksd(X, -X, ps.Function(lambda x, y: float(np.exp(-np.sum((x - y) ** 2))))),
        r"function uses the value",
        r"pure JAX",
        r"jnp in place of np",
    ),
    wrong_type("Function of a number", lambda: ps.Function(2.0), r"2\.0", r"function|callable", r"lambda"),
    wrong_value(
        "Function that returns a vector",
        lambda: ps.ksd(X, -X, ps.Function(lambda x, y: jnp.exp(-((x - y) ** 2)))),
        r"shape \(2,\)",
        r"scalar|one number",
        r"sum|prod",
    ),
    wrong_type(
        "Function that returns an integer",
        lambda: ps.ksd(X, -X, ps.Function(lambda x, y: 1)),
        r"int",
        r"float",
        r"1\.0|float|astype",
    ),
    wrong_type("kernel plus number", lambda: ps.RBF() + 1.0, r"1\.0", r"kernel", r"RBF\(|Linear|Function|scal|\*"),
    wrong_value("kernel times negative", lambda: ps.RBF() * -1.0, r"-1", r"nonnegative", r"clip|try|positive"),
    wrong_value("negative times kernel", lambda: -2.0 * ps.RBF(), r"-2", r"nonnegative", r"clip|try|positive"),
    wrong_value("kernel times nan", lambda: ps.RBF() * float("nan"), r"nan", r"nonnegative", r"clip|try"),
    wrong_type("kernel times string", lambda: ps.RBF() * "2", r"'2'", r"number|kernel", r"example|try|RBF\("),
]

BANKS = [
    wrong_value("empty bank", lambda: ps.Bank(), r"empty bank", r"at least one", r"Bank\.dyadic"),
    wrong_type("bank of a list", lambda: ps.Bank([ps.RBF(), ps.IMQ()]), r"\[", r"one by one", r"Bank\(|\*"),
    wrong_type("bank of a bank", lambda: ps.Bank(ps.Bank.dyadic()), r"Bank", r"kernels", r"Bank\(|\*"),
    wrong_type("bank of a ladder", lambda: ps.Bank(ps.DyadicLadder()), r"DyadicLadder", r"kernels", r"\.at\(|Bank\("),
    *kernel_cases("bank of a", lambda k: ps.Bank(ps.RBF(), k)),
    wrong_type("bank indexed by a name", lambda: ps.Bank.dyadic()["rbf"], r"'rbf'", r"int", r"kernel=0"),
    wrong_type("bank indexed by a slice", lambda: ps.Bank.dyadic()[1:3], r"slice\(1, 3", r"int", r"kernel=0"),
    *positive_cases("Bank.dyadic h", lambda h: ps.Bank.dyadic(h)),
    wrong_value("Bank.dyadic vector", lambda: ps.Bank.dyadic([1.0, 2.0]), r"\(2,\)|\[1", r"one |number|scalar", r"Bank\("),
    wrong_value(
        "Bank.dyadic upside down", lambda: ps.Bank.dyadic(1.0, 5, -4), r"2\^5 to 2\^-4", r"low <= high", r"low=-4, high=5"
    ),
    wrong_type("Bank.dyadic low float", lambda: ps.Bank.dyadic(1.0, -0.5, 2), r"-0\.5", r"int", r"try"),
    wrong_type("Bank.dyadic high float", lambda: ps.Bank.dyadic(1.0, -1, 2.5), r"2\.5", r"int", r"try"),
    wrong_type("Bank.dyadic low string", lambda: ps.Bank.dyadic(1.0, "a", 2), r"'a'", r"int", r"try"),
    wrong_value("Bank.dyadic overflows", lambda: ps.Bank.dyadic(1.0, -4, 2000), r"2000|inf", r"expected", r"try|first choice"),
    wrong_value("Bank.dyadic underflows", lambda: ps.Bank.dyadic(1.0, -2000, 5), r"-2000|0", r"expected", r"try|first choice"),
    wrong_value("mix one too few", lambda: ps.Bank.dyadic().mix(np.ones(9)), r"\(9,\) for 10", r"\(10,\)", r"try"),
    wrong_value("mix a number", lambda: ps.Bank.dyadic().mix(1.0), r"shape \(\) for 10", r"\(10,\)", r"try"),
    wrong_value("mix a column", lambda: ps.Bank.dyadic().mix(np.ones((10, 1))), r"\(10, 1\)", r"\(10,\)", r"try"),
    wrong_value("mix nothing", lambda: ps.Bank.dyadic().mix([]), r"\(0,\)", r"\(10,\)", r"try"),
    wrong_value("mix negative", lambda: ps.Bank.dyadic(1.0, 0, 1).mix([1.0, -0.1]), r"-0\.1", r"nonnegative", r"clip"),
    wrong_value("mix nan", lambda: ps.Bank.dyadic(1.0, 0, 1).mix([1.0, np.nan]), r"nan", r"nonnegative finite", r"clip"),
    wrong_type("mix strings", lambda: ps.Bank.dyadic(1.0, 0, 1).mix(["a", "b"]), r"'a'", r"number", r"example|try"),
    wrong_type("mix none", lambda: ps.Bank.dyadic(1.0, 0, 1).mix(None), r"None", r"number", r"example|try"),
    wrong_type("mix complex", lambda: ps.Bank.dyadic(1.0, 0, 1).mix([1 + 0j, 1j]), r"j", r"real|number", r"example|try"),
    wrong_type("Mixture of a kernel", lambda: ps.Mixture(ps.RBF(), [1.0]), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_type("Mixture of a list", lambda: ps.Mixture([ps.RBF()], [1.0]), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_value("Mixture one too many", lambda: ps.Mixture(ps.Bank(ps.RBF()), [1.0, 2.0]), r"\(2,\) for 1", r"\(1,\)", r"try"),
]

BANDWIDTHS = [
    *points_cases("LiuWang", lambda x: LiuWang()(x)),
    *(
        case
        for name, rule in {
            "NumPyro": NumPyro,
            "BlackJAX": BlackJAX,
            "Pyro": PyroPerDimension,
            "MatrixSVGDMedian": MatrixSVGDMedian,
        }.items()
        for case in points_cases(name, lambda x, rule=rule: rule()(x))
        if case.id.endswith((" 1d", " nan", " integers", " no rows"))
    ),
    *points_cases("DyadicLadder.at", lambda x: ps.DyadicLadder().at(x)),
    *points_cases("QuantileLadder.at", lambda x: ps.QuantileLadder().at(x)),
    *whole_cases("LiuWang points", lambda n: LiuWang(points=n)),
    wrong_value("LiuWang points 1", lambda: LiuWang(points=1), r"points=1", r"at least 2", r"try points=2"),
    *whole_cases("QuantileLadder size", lambda m: ps.QuantileLadder(size=m)),
    wrong_value("QuantileLadder size 0", lambda: ps.QuantileLadder(size=0), r"size=0", r"at least 1", r"try size=2"),
    wrong_value("QuantileLadder low negative", lambda: ps.QuantileLadder(low=-0.1), r"-0\.1", r"0 <= low", r"try low=0\.05"),
    wrong_value("QuantileLadder percent", lambda: ps.QuantileLadder(low=5, high=95), r"95", r"<= 1", r"try low=0\.05"),
    wrong_value(
        "QuantileLadder upside down", lambda: ps.QuantileLadder(low=0.9, high=0.1), r"0\.9", r"low <= high", r"try low"
    ),
    wrong_value("QuantileLadder nan", lambda: ps.QuantileLadder(low=float("nan")), r"nan", r"low <= high", r"try low"),
    wrong_type("QuantileLadder string", lambda: ps.QuantileLadder(low="min"), r"'?min'?", r"expected", r"try low"),
    wrong_type(
        "QuantileLadder kernel instance",
        lambda: ps.QuantileLadder(kernel=ps.RBF()),
        r"RBF",
        r"makes|class|function",
        r"kernel=RBF|lambda",
    ),
    wrong_value(
        "DyadicLadder upside down", lambda: ps.DyadicLadder(low=3, high=1), r"2\^3 to 2\^1", r"low <= high", r"try low"
    ),
    wrong_type("DyadicLadder low float", lambda: ps.DyadicLadder(low=-1.5), r"-1\.5", r"int", r"try"),
    wrong_type("DyadicLadder high string", lambda: ps.DyadicLadder(high="5"), r"'5'", r"int", r"try"),
    wrong_type("DyadicLadder rule number", lambda: ps.DyadicLadder(1.0), r"1\.0", r"rule", r"LiuWang\(\)|Bank\.dyadic"),
    wrong_type("DyadicLadder rule class", lambda: ps.DyadicLadder(LiuWang), r"LiuWang", r"rule", r"LiuWang\(\)"),
    wrong_type("DyadicLadder rule string", lambda: ps.DyadicLadder("median"), r"'median'", r"rule", r"LiuWang\(\)"),
    wrong_type(
        "DyadicLadder kernel instance",
        lambda: ps.DyadicLadder(kernel=ps.IMQ()),
        r"IMQ",
        r"makes|class|function",
        r"kernel=IMQ|lambda|kernel=RBF",
    ),
    wrong_type(
        "DyadicLadder kernel string",
        lambda: ps.DyadicLadder(kernel="rbf"),
        r"'rbf'",
        r"makes|class|function",
        r"kernel=|lambda",
    ),
    wrong_type(
        "DyadicLadder kernel that makes none",
        lambda: ps.DyadicLadder(kernel=lambda h: h).at(X),
        r"lambda|no kernel|Array",
        r"kernel",
        r"RBF|IMQ|lambda",
    ),
    # a rule with a bandwidth per coordinate centres no ladder of scalar bandwidths
    Case(
        "DyadicLadder with a rule per dimension",
        lambda: ps.DyadicLadder(PyroPerDimension()).at(X),
        ValueError,
        r"PyroPerDimension|\(2,\)",
        r"one |number|scalar",
        r"LiuWang|Stretch|SVGD",
    ),
]

DISCREPANCIES = [
    *points_cases("ksd samples", lambda x: ps.ksd(x, -X, ps.RBF())),
    *points_cases("ksd scores", lambda s: ps.ksd(X, s, ps.RBF())),
    *points_cases("ksd half scores", lambda s: ps.ksd(X, (-X, s), ps.RBF(), statistic=ps.TwoBatch()), skip=("half",)),
    *(
        case
        for name, call in {
            "mksd": lambda x: ps.mksd(x, -X, ps.Bank.dyadic(), np.ones(10)),
            "max_mksd": lambda x: ps.max_mksd(x, -X, ps.Bank.dyadic()),
        }.items()
        for case in points_cases(name, call)
        if case.id.endswith((" 1d", " nan", " integers", " no rows"))
    ),
    wrong_value("ksd fewer scores", lambda: ps.ksd(X, -X[:5], ps.RBF()), r"\(5, 2\).*\(6, 2\)", r"same shape", r"row"),
    wrong_value("ksd one score for all", lambda: ps.ksd(X, -X[:1], ps.RBF()), r"\(1, 2\).*\(6, 2\)", r"same shape", r"row"),
    wrong_value("ksd transposed scores", lambda: ps.ksd(X, -X.T, ps.RBF()), r"\(2, 6\).*\(6, 2\)", r"same shape", r"row"),
    wrong_type(
        "ksd score function",
        lambda: ps.ksd(X, lambda x: -x, ps.RBF()),
        r"function|lambda",
        r"array|score",
        r"vmap|call|evaluate|row",
    ),
    wrong_value("ksd three scores", lambda: ps.ksd(X, (-X, -X, -X), ps.RBF()), r"3 scores", r"pair", r"\(first, second\)"),
    wrong_value("ksd no scores", lambda: ps.ksd(X, (), ps.RBF()), r"0 scores", r"pair", r"\(first, second\)"),
    wrong_value("ksd unequal halves", lambda: ps.ksd(X, (-X, -X[:3]), ps.RBF()), r"\(3, 2\)", r"same shape", r"row"),
    *kernel_cases("ksd kernel", lambda k: ps.ksd(X, -X, k)),
    wrong_type("ksd kernel list", lambda: ps.ksd(X, -X, [ps.RBF()]), r"\[", r"kernel", r"Bank\("),
    wrong_type("ksd kernel ladder", lambda: ps.ksd(X, -X, ps.DyadicLadder()), r"DyadicLadder", r"kernel", r"\.at\("),
    wrong_type("ksd kernel bandwidth rule", lambda: ps.ksd(X, -X, LiuWang()), r"LiuWang", r"kernel", r"RBF\("),
    *rough_cases("ksd", lambda k: ps.ksd(X, -X, k)),
    *rough_cases("ksd on a line", lambda k: ps.ksd(X[:, :1], -X[:, :1], k)),
    *rough_cases("MKSVGD", lambda k: run(ps.MKSVGD(k if isinstance(k, ps.Bank) else ps.Bank(k)))),
    *rough_cases("max_mksd", lambda k: ps.max_mksd(X, -X, k if isinstance(k, ps.Bank) else ps.Bank(k)))[:1],
    wrong_value(
        "MKSVGD ladder of Laplace",
        lambda: run(ps.MKSVGD(ps.DyadicLadder(kernel=ps.Laplace))),
        r"not differentiable",
        r"expected a kernel",
        r"SmoothLaplace",
    ),
    wrong_type("ksd statistic class", lambda: ps.ksd(X, -X, ps.RBF(), statistic=ps.V), r"V", r"statistic", r"V\(\)"),
    wrong_type("ksd statistic string", lambda: ps.ksd(X, -X, ps.RBF(), statistic="u"), r"'u'", r"statistic", r"U\(\)"),
    wrong_type("ksd pairs class", lambda: ps.ksd(X, -X, ps.RBF(), pairs=ps.Tiled), r"Tiled", r"pairs", r"Tiled\(\)|Dense\(\)"),
    wrong_type("ksd pairs string", lambda: ps.ksd(X, -X, ps.RBF(), pairs="dense"), r"'dense'", r"pairs", r"Dense\(\)"),
    wrong_value(
        "TwoBatch without halves",
        lambda: ps.ksd(X, -X, ps.RBF(), statistic=ps.TwoBatch()),
        r"one score each",
        r"two independent",
        r"\(first, second\)",
    ),
    wrong_value("U of one sample", lambda: ps.ksd(X[:1], -X[:1], ps.RBF()), r"1 |one ", r"at least (2|two)", r"V\(\)|more"),
    wrong_value(
        "LinearTime of one sample",
        lambda: ps.ksd(X[:1], -X[:1], ps.RBF(), statistic=ps.LinearTime()),
        r"1 |one ",
        r"at least",
        r"V\(\)|more|U\(\)",
    ),
    wrong_value(
        "LinearTime of one pair",
        lambda: ps.ksd(X[:3], -X[:3], ps.RBF(), statistic=ps.LinearTime()),
        r"3 |three",
        r"at least (4|four)",
        r"V\(\)|more|U\(\)",
    ),
    wrong_value(
        "Incomplete of one sample",
        lambda: ps.ksd(X[:1], -X[:1], ps.RBF(), statistic=ps.Incomplete(KEY)),
        r"1 |one ",
        r"at least (2|two)",
        r"V\(\)|more",
    ),
    wrong_type("Incomplete seed", lambda: ps.Incomplete(0), r"key=0", r"jax\.random", r"jax\.random\.key"),
    *whole_cases("Incomplete size", lambda m: ps.Incomplete(KEY, m)),
    wrong_value("mksd one too few", lambda: ps.mksd(X, -X, ps.Bank.dyadic(), np.ones(9)), r"\(9,\) for 10", r"\(10,\)", r"try"),
    wrong_value("mksd negative", lambda: ps.mksd(X, -X, ps.Bank.dyadic(), -np.ones(10)), r"-1", r"nonnegative", r"clip"),
    wrong_type("mksd kernel", lambda: ps.mksd(X, -X, ps.RBF(), [1.0]), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_type("mksd list", lambda: ps.mksd(X, -X, [ps.RBF()], [1.0]), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_type("mksd ladder", lambda: ps.mksd(X, -X, ps.DyadicLadder(), np.ones(10)), r"DyadicLadder", r"[Bb]ank", r"\.at\("),
    wrong_type("max_mksd kernel", lambda: ps.max_mksd(X, -X, ps.RBF()), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_type("max_mksd ladder", lambda: ps.max_mksd(X, -X, ps.DyadicLadder()), r"DyadicLadder", r"[Bb]ank", r"\.at\("),
    wrong_value(
        "Points of unequal shapes", lambda: ps.Points.of(jnp.asarray(X), jnp.asarray(X[:5])), r"\(5, 2\)", r"same shape", r"row"
    ),
    wrong_value(
        "Points with halves of unequal shapes",
        lambda: ps.Points.of(jnp.asarray(X), jnp.asarray(X), halves=(jnp.asarray(X), jnp.asarray(X[:5]))),
        r"\(5, 2\)",
        r"same shape",
        r"row",
    ),
    wrong_value(
        "Points with live of another length",
        lambda: ps.Points.of(jnp.asarray(X), jnp.asarray(X), live=jnp.ones(5, bool)),
        r"\(5,\)",
        r"\(6,\)",
        r"one|per|give|mask",
    ),
    wrong_value(
        "Points with one half",
        lambda: ps.Points.of(X, X, halves=(X,)),
        r"halves of 1 ",
        r"two independent",
        r"\(first, second\)",
    ),
    wrong_value(
        "Points with halves in one array",
        lambda: ps.Points.of(X, X, halves=X),
        r"halves of 6",
        r"two independent",
        r"\(first, ",
    ),
    wrong_value("Points with live numbers", lambda: ps.Points.of(X, X, live=np.arange(6)), r"dtype int", r"bool", r"True or"),
    *(case for case in points_cases("Points", lambda x: ps.Points.of(x, x)) if case.id.endswith((" 1d", " integers"))),
]

METHODS = [
    wrong_value(
        "Fixed of another length",
        lambda: run(ps.MKSVGD(ps.Bank.dyadic(1.0, 0, 2), Fixed([1.0, 2.0]))),
        r"\(2,\) for 3",
        r"\(3,\)",
        r"give 3",
    ),
    wrong_value(
        "Fixed column",
        lambda: run(ps.MKSVGD(ps.Bank.dyadic(1.0, 0, 1), Fixed([[1.0], [2.0]]))),
        r"\(2, 1\)",
        r"\(2,\)",
        r"give 2",
    ),
    wrong_value("Fixed negative", lambda: Fixed([1.0, -1.0]), r"-1", r"nonnegative", r"clip"),
    wrong_value("Fixed nan", lambda: Fixed([1.0, np.nan]), r"nan", r"nonnegative finite", r"clip"),
    wrong_type("Fixed string", lambda: Fixed("uniform"), r"'uniform'", r"number", r"example|try"),
    wrong_type("Fixed complex", lambda: Fixed([1j]), r"j", r"real|number", r"example|try"),
    wrong_type("Paper statistic class", lambda: Paper(statistic=ps.V), r"V", r"statistic", r"V\(\)"),
    wrong_type("Paper statistic string", lambda: Paper(statistic="V"), r"'V'", r"statistic", r"V\(\)|U\(\)"),
    wrong_type(
        "Paper statistic of some pairs",
        lambda: Paper(statistic=ps.LinearTime()),
        r"LinearTime",
        r"all pairs|statistic",
        r"U\(\)",
    ),
    wrong_value(
        "TwoBatch rule where scores come once",
        lambda: run(ps.MKSVGD(weights=Paper(statistic=ps.TwoBatch()))),
        r"one score",
        r"two independent",
        r"U\(\)",
    ),
    wrong_value("Paper memory 1", lambda: Paper(memory=1.0), r"memory=1", r"\[0, 1\)", r"try memory=0\.9"),
    wrong_value(
        "Paper memory negative", lambda: Paper(memory=-0.1), r"memory=-0\.1", r"nonnegative|\[0, 1\)", r"try memory|clip"
    ),
    wrong_value("Paper memory nan", lambda: Paper(memory=np.nan), r"memory=nan", r"nonnegative|\[0, 1\)", r"try memory|clip"),
    wrong_type("Paper memory string", lambda: Paper(memory="long"), r"'long'", r"number", r"example|try"),
    wrong_type("Paper divisor class", lambda: Paper(divisor=NullDeviation), r"NullDeviation", r"divisor", r"NullDeviation\(\)"),
    wrong_type("Paper divisor number", lambda: Paper(divisor=2.0), r"2\.0", r"divisor", r"NullDeviation\(\)|NoDivisor\(\)"),
    wrong_type("Paper fallback class", lambda: Paper(fallback=Even), r"Even", r"fallback", r"Even\(\)"),
    wrong_type("Paper fallback string", lambda: Paper(fallback="last"), r"'last'", r"fallback", r"Last\(\)|Even\(\)"),
    *nonpositive_cases("Softmax temperature", lambda t: Softmax(temperature=t)),
    wrong_type("Ascent step size", lambda: Ascent(optim=0.05), r"0\.05", r"optax|optimiser", r"optax\."),
    wrong_type("Ascent uncalled", lambda: Ascent(optim=optax.adagrad), r"adagrad", r"optax|optimiser", r"optax\.|call"),
    wrong_type("MKSVGD lagged string", lambda: ps.MKSVGD(lagged="no"), r"'no'", r"True or False", r"lagged=True"),
    wrong_value("MKSVGD balance negative", lambda: ps.MKSVGD(balance=-1), r"balance=-1", r"\[0, 1\)", r"try balance"),
    wrong_type("MKSVGD bank kernel", lambda: ps.MKSVGD(ps.RBF()), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_type("MKSVGD bank list", lambda: ps.MKSVGD([ps.RBF(), ps.IMQ()]), r"RBF", r"[Bb]ank", r"Bank\("),
    wrong_type("MKSVGD bank class", lambda: ps.MKSVGD(ps.DyadicLadder), r"DyadicLadder", r"[Bb]ank", r"DyadicLadder\(\)"),
    wrong_type("MKSVGD bank rule", lambda: ps.MKSVGD(LiuWang()), r"LiuWang", r"[Bb]ank", r"DyadicLadder\("),
    wrong_type("MKSVGD weights string", lambda: ps.MKSVGD(weights="paper"), r"'paper'", r"rule|weights", r"Paper\(\)"),
    wrong_type("MKSVGD weights class", lambda: ps.MKSVGD(weights=Argmax), r"Argmax", r"rule|weights", r"Argmax\(\)|Paper\(\)"),
    wrong_type("MKSVGD weights array", lambda: ps.MKSVGD(weights=np.ones(10)), r"array|1\.", r"rule|weights", r"Fixed\("),
    wrong_value(
        "MKSVGD.paper upside down", lambda: ps.MKSVGD.paper(low=5, high=-4), r"2\^5 to 2\^-4", r"low <= high", r"low=-4"
    ),
    wrong_type("MKSVGD.paper low float", lambda: ps.MKSVGD.paper(low=-3.5), r"-3\.5", r"int", r"try"),
    wrong_type("MKSVGD.paper statistic string", lambda: ps.MKSVGD.paper(statistic="U"), r"'U'", r"statistic", r"U\(\)"),
    wrong_type(
        "MKSVGD.paper rule instance",
        lambda: ps.MKSVGD.paper(rule=Argmax()),
        r"Argmax",
        r"class",
        r"rule=Argmax|rule=Paper|MKSVGD\(",
    ),
    wrong_type("MatrixSVGD curvature class", lambda: ps.MatrixSVGD(ps.Fisher), r"Fisher", r"curvature", r"Fisher\(\)"),
    wrong_type("MatrixSVGD curvature matrix", lambda: ps.MatrixSVGD(np.eye(2)), r"array", r"curvature", r"Fisher\(\)"),
    wrong_type("MatrixSVGD kernel inner", lambda: ps.MatrixSVGD(kernel=ps.Linear()), r"Linear", r"radial kernel", r"RBF\(1"),
    wrong_type("MatrixSVGD mixture string", lambda: ps.MatrixSVGD(mixture="no"), r"'no'", r"True or False", r"mixture=True"),
    wrong_value(
        "Given matrix of another dimension", lambda: run(ps.MatrixSVGD(ps.Given(np.eye(3)))), r"\(3, 3\)", r"\(2, 2\)", r"give"
    ),
    wrong_value("Fisher damping 0", lambda: ps.Fisher(damping=0.0), r"damping=0", r"positive", r"try"),
    wrong_value("Fisher memory 1", lambda: ps.Fisher(memory=1.0), r"memory=1", r"\[0, 1\)", r"try memory"),
    wrong_value(
        "Kronecker of too few parameters",
        lambda: run(ps.MatrixSVGD(ps.Kronecker(shapes=((1,),)))),
        r"make 1 param",
        r"expected 2",
        r"give",
    ),
    wrong_type("Langevin drift kernel", lambda: ps.Langevin(ps.RBF()), r"RBF", r"a method", r"SVGD\(\)"),
    wrong_value("Langevin cold", lambda: ps.Langevin(temperature=-1.0), r"temperature=-1", r"nonnegative", r"try"),
    wrong_value("Langevin step 0", lambda: ps.Langevin(step=0.0), r"step=0", r"positive", r"try"),
    wrong_type(
        "FunctionSpace in part",
        lambda: ps.FunctionSpace(lambda theta, key: theta),
        r"in part",
        r"all three",
        r"FunctionSpace\(",
    ),
    wrong_type("FunctionSpace outputs number", lambda: ps.FunctionSpace(2.0), r"2\.0", r"theta and key", r"lambda theta"),
    wrong_type("SVGD number", lambda: ps.SVGD(1.0), r"1\.0", r"kernel", r"RBF\("),
    wrong_type("SVGD string", lambda: ps.SVGD("rbf"), r"'rbf'", r"kernel", r"RBF\("),
    wrong_type("SVGD class", lambda: ps.SVGD(ps.IMQ), r"IMQ", r"kernel", r"IMQ\(\)|RBF\("),
    wrong_type("SVGD function", lambda: ps.SVGD(bare_laplace), r"bare_laplace", r"kernel", r"Function\("),
    wrong_type("SVGD bank", lambda: ps.SVGD(ps.Bank.dyadic()), r"Bank", r"kernel", r"mix\(|MKSVGD"),
    wrong_type("SVGD ladder", lambda: ps.SVGD(ps.DyadicLadder()), r"DyadicLadder", r"kernel", r"MKSVGD"),
]


def rude_density(x: Any) -> Any:
    """Written for numpy."""
    return -float(np.linalg.norm(np.asarray(x)))


def branching_density(x: Any) -> Any:
    """A half normal with a Python branch."""
    return -0.5 * jnp.sum(x**2) if x[0] > 0 else -jnp.inf


TARGETS = [
    wrong_type(
        "Target.of no function",
        lambda: ps.Target.of(2.0, jnp.zeros(2)),
        r"2\.0",
        r"function|callable|log.density",
        r"lambda|pass|write",
    ),
    wrong_type(
        "Target.of arguments swapped",
        lambda: ps.Target.of(jnp.zeros(2), density),
        r"Array|\[0",
        r"function|callable|log.density",
        r"lambda|pass|write|swap",
    ),
    wrong_type(
        "Target.of like integers", lambda: ps.Target.of(density, jnp.arange(2)), r"like has dtype int", r"floats", r"0\.0"
    ),
    wrong_type(
        "Target.of like an integer leaf",
        lambda: ps.Target.of(density, {"a": jnp.zeros(2), "b": 0}),
        r"like\['b'\] has dtype int",
        r"floats",
        r"0\.0",
    ),
    wrong_type("Target.of like a dimension", lambda: ps.Target.of(density, 2), r"like has dtype int", r"floats", r"0\.0|zeros"),
    wrong_type(
        "Target.of like a shape", lambda: ps.Target.of(density, (3, 2)), r"like\[0\] has dtype int", r"floats", r"0\.0|zeros"
    ),
    wrong_type("Target.of like booleans", lambda: ps.Target.of(density, jnp.ones(2, bool)), r"bool", r"floats", r"0\.0"),
    wrong_type(
        "Target.of like complex", lambda: ps.Target.of(density, jnp.zeros(2, complex)), r"complex", r"float", r"0\.0|real|imag"
    ),
    wrong_type(
        "Target.of like half",
        lambda: ps.Target.of(density, jnp.zeros(2, jnp.float16)),
        r"float16",
        r"float32",
        r"0\.0|astype|float",
    ),
    wrong_type("Target.of like a string", lambda: ps.Target.of(density, "x"), r"'x'|like", r"float|array", r"0\.0|zeros"),
    wrong_type(
        "Target.of like a named string",
        lambda: ps.Target.of(density, {"a": "x"}),
        r"like\['a'\]|'x'",
        r"float|array",
        r"0\.0|zeros",
    ),
    wrong_type(
        "Target.of like objects", lambda: ps.Target.of(density, np.array([1.0, None])), r"object|like", r"float", r"0\.0|zeros"
    ),
    wrong_value("Target.of like nothing", lambda: ps.Target.of(density, {}), r"like=\{\}", r"example", r"zeros"),
    wrong_value("Target.of like none", lambda: ps.Target.of(density, None), r"like=None", r"example", r"zeros"),
    wrong_value("Target.of like an empty array", lambda: ps.Target.of(density, jnp.zeros(0)), r"like=", r"example", r"zeros"),
    wrong_value(
        "Target.of like nan",
        lambda: ps.Target.of(density, jnp.array([0.0, jnp.nan])),
        r"nan",
        r"finite",
        r"zeros|drop|look|write|start",
    ),
    wrong_value(
        "Target.of like inf", lambda: ps.Target.of(density, {"a": jnp.inf}), r"inf", r"finite", r"zeros|drop|look|write|start"
    ),
    wrong_value(
        "density of shape (1,)",
        lambda: run(of=ps.Target.of(lambda x: -0.5 * jnp.sum(x**2)[None], jnp.zeros(2))),
        r"\(1,\)",
        r"scalar|one number",
        r"sum|\[0\]",
    ),
    wrong_value(
        "density per coordinate",
        lambda: run(of=ps.Target.of(lambda x: -0.5 * x**2, jnp.zeros(2))),
        r"\(2,\)",
        r"scalar|one number",
        r"sum",
    ),
    wrong_type(
        "density of integers", lambda: run(of=ps.Target.of(lambda x: jnp.sum(x > 0), jnp.zeros(2))), r"int", r"float", r"\w+"
    ),
    wrong_type(
        "density of a Python int", lambda: run(of=ps.Target.of(lambda x: 0, jnp.zeros(2))), r"int", r"float", r"0\.0|\w+"
    ),
    wrong_type(
        "density of a bool",
        lambda: run(of=ps.Target.of(lambda x: jnp.all(x > 0), jnp.zeros(2))),
        r"bool",
        r"float",
        r"where|log",
    ),
    wrong_type(
        "density of a complex",
        lambda: run(of=ps.Target.of(lambda x: 1j * jnp.sum(x), jnp.zeros(2))),
        r"complex",
        r"float|real",
        r"real",
    ),
    wrong_type(
        "density returns none", lambda: run(of=ps.Target.of(lambda x: None, jnp.zeros(2))), r"None", r"scalar|number", r"return"
    ),
    wrong_type(
        "density returns a pair",
        lambda: run(of=ps.Target.of(lambda x: (jnp.sum(x), 1.0), jnp.zeros(2))),
        r"tuple",
        r"scalar|number",
        r"return",
    ),
    wrong_type(
        "density of two arguments",
        lambda: run(of=ps.Target.of(lambda x, data: -jnp.sum(x), jnp.zeros(2))),
        r"data|argument",
        r"one ",
        r"partial|lambda",
    ),
    wrong_type(
        "density in numpy",
        lambda: run(of=ps.Target.of(rude_density, jnp.zeros(2))),
        r"numpy|rude_density",
        r"expected .*(jax|JAX)",
        r"jnp|jax\.numpy",
    ),
    wrong_type(
        "density with a branch",
        lambda: run(of=ps.Target.of(branching_density, jnp.zeros(2))),
        r"if|branch|bool",
        r"expected",
        r"jnp\.where",
    ),
    wrong_value("Target.score of a vector", lambda: target().score(jnp.zeros(2)), r"\(2,\)", r"\(n, (d|2)\)", r"None"),
    wrong_value(
        "Target.score of another dimension",
        lambda: target().score(jnp.zeros((4, 3))),
        r"\(4, 3\)",
        r"\(n, 2\)",
        r"like|reshape|check",
    ),
    wrong_type("Target.score of integers", lambda: target().score(jnp.zeros((4, 2), int)), r"int", r"float", r"astype"),
]


ROWS = np.linspace(0.0, 1.0, 8, dtype=np.float32)


def minibatched(
    prior: Any = lambda m: -0.5 * m**2, likelihood: Any = lambda m, y: -0.5 * (y - m) ** 2, **given: Any
) -> ps.Target:
    """The mean of eight numbers, in which only what is given is wrong."""
    return ps.Target.minibatched(prior, likelihood, **({"data": ROWS, "like": 0.0, "batch": 4} | given))


OTHER_TARGETS = [
    *whole_cases("minibatched batch", lambda b: minibatched(batch=b)),
    wrong_value("minibatched batch 0", lambda: minibatched(batch=0), r"batch=0", r"at least 1", r"try batch"),
    wrong_value(
        "minibatched batch beyond the rows", lambda: minibatched(batch=9), r"batch=9 of 8 rows", r"at most 8", r"batch=8"
    ),
    wrong_value("minibatched odd halves", lambda: minibatched(batch=3, halves=True), r"batch=3", r"even", r"batch=[24]"),
    wrong_value(
        "minibatched odd halves of all rows",
        lambda: minibatched(data=ROWS[:3], batch=3, halves=True),
        r"batch=3",
        r"even",
        r"batch=2",  # four are more than there are
    ),
    wrong_value(
        "minibatched rows of unequal number",
        lambda: minibatched(data=(ROWS, ROWS[:5])),
        r"\(5,\)|5",
        r"same number of rows",
        r"rows",
    ),
    wrong_value("minibatched scalar data", lambda: minibatched(data=1.0), r"axes|data", r"rows", r"rows"),
    wrong_value("minibatched no data", lambda: minibatched(data=()), r"data", r"rows", r"rows"),
    wrong_value(
        "minibatched no rows", lambda: minibatched(data=ROWS[:0], batch=1), r"0 rows|data", r"expected", r"rows|Target\.of"
    ),
    wrong_type("minibatched prior no function", lambda: minibatched(prior=0.0), r"log_prior=0\.0", r"expected", r"lambda"),
    wrong_value(
        "minibatched prior per coordinate",
        lambda: minibatched(lambda m: -(m**2), like=jnp.zeros(2)),
        r"log_prior.*\(2,\)",
        r"scalar",
        r"sum",
    ),
    wrong_type(
        "minibatched likelihood of one argument",
        lambda: minibatched(likelihood=lambda m: -m),
        r"log_likelihood",
        r"the rows",
        r"lambda",
    ),
    wrong_value(
        "minibatched likelihood of all pairs",
        lambda: minibatched(likelihood=lambda m, y: y[:, None] * y[None, :] * m),
        r"\(4, 4\) for 4 rows",
        r"one number per row",
        r"reduce",
    ),
    wrong_type(
        "minibatched likelihood of booleans", lambda: minibatched(likelihood=lambda m, y: y > m), r"bool", r"float", r"float"
    ),
    wrong_value(
        "of_score of another shape",
        lambda: ps.Target.of_score(lambda x: -x[:1], jnp.zeros(2)),
        r"\(1,\).*\(2,\)",
        r"shapes of its argument",
        r"return",
    ),
    wrong_value(
        "of_score of another tree",
        lambda: ps.Target.of_score(lambda p: -p["a"], {"a": jnp.zeros(2)}),
        r"\(2,\)",
        r"the tree",
        r"return",
    ),
    wrong_value(
        "of_score that is a density",
        lambda: ps.Target.of_score(density, jnp.zeros(2)),
        r"\(\).*\(2,\)",
        r"shapes of its argument",
        r"return",
    ),
    wrong_type(
        "of_score of integers",
        lambda: ps.Target.of_score(lambda x: jnp.sign(x).astype(int), jnp.zeros(2)),
        r"int",
        r"float",
        r"float",
    ),
    wrong_type("of_score no function", lambda: ps.Target.of_score(X, jnp.zeros(2)), r"score=", r"expected", r"lambda"),
    *nonpositive_cases("tempered beta", lambda b: target().tempered(b)),
    wrong_value("Interval upside down", lambda: ps.Interval(1.0, 0.0), r"1\.0, 0\.0", r"low < high", r"Positive"),
    wrong_value("Interval without end", lambda: ps.Interval(0.0, float("inf")), r"inf", r"finite", r"Positive"),
    wrong_value("Interval nan", lambda: ps.Interval(float("nan"), 1.0), r"nan", r"low < high", r"Positive"),
    wrong_type("Interval string", lambda: ps.Interval("0", 1.0), r"'0'", r"number", r"try|Positive|example"),
    wrong_type(
        "constrain class",
        lambda: ps.Target.of(density, {"a": 1.0}, constrain={"a": ps.Positive}),
        r"Positive",
        r"bijection",
        r"Positive\(\)",
    ),
    wrong_type(
        "constrain string",
        lambda: ps.Target.of(density, {"a": 1.0}, constrain={"a": "positive"}),
        r"'positive'",
        r"bijection",
        r"Positive\(\)",
    ),
    # silently unconstrained otherwise
    wrong_value(
        "constrain a name that is not there",
        lambda: ps.Target.of(lambda p: -(p["sigma"] ** 2), {"sigma": 1.0}, constrain={"sgima": ps.Positive()}),
        r"sgima",
        r"expected",
        r"sigma|like",
    ),
    wrong_value(
        "Simplex of one part",
        lambda: ps.Target.of(density, jnp.ones(1), constrain=ps.Simplex()),
        r"\(1,\)",
        r"two parts",
        r"\(K,\)",
    ),
    wrong_value(
        "Ordered scalar", lambda: ps.Target.of(density, 0.0, constrain=ps.Ordered()), r"shape \(\)", r"vector", r"\(K,\)"
    ),
    wrong_value(
        "correlation of a vector",
        lambda: ps.Target.of(density, jnp.ones(3), constrain=ps.CorrelationCholesky()),
        r"\(3,\)",
        r"\(K, K\)",
        r"eye",
    ),
]


RUNS = [
    *points_cases("run particles", lambda x: run(particles=x), skip=("0d", "none", "ragged list")),
    wrong_value(
        "run particles of another dimension",
        lambda: run(particles=np.zeros((4, 3), np.float32)),
        r"\(4, 3\).* 2 numbers",
        r"\(n, 2\)",
        r"check like",
    ),
    wrong_value("run no particles", lambda: run(particles=0), r"particles=0", r"at least 1", r"try particles=2"),
    *whole_cases("run particles", lambda n: run(particles=n)),
    wrong_type(
        "run particles as a tree",
        lambda: run(particles={"a": np.zeros((4, 2))}),
        r"dict|\{",
        r"\(n, d\)|\(n, 2\)|int",
        r"ravel|array|number",
    ),
    *whole_cases("run steps", lambda n: run(steps=n)),
    wrong_type("run steps an array", lambda: run(steps=np.arange(3)), r"steps=", r"int", r"try"),
    wrong_type("run key seed", lambda: run(key=0), r"key=0", r"jax\.random", r"jax\.random\.key"),
    wrong_type("run key none", lambda: run(key=None), r"key=None", r"jax\.random", r"jax\.random\.key"),
    wrong_type(
        "run key numpy", lambda: run(key=np.random.default_rng(0)), r"key=Generator", r"jax\.random", r"jax\.random\.key"
    ),
    wrong_type("run key floats", lambda: run(key=jnp.zeros(2)), r"key=", r"jax\.random", r"jax\.random\.key"),
    wrong_type("run key signed", lambda: run(key=jnp.zeros(2, jnp.int32)), r"key=", r"jax\.random", r"jax\.random\.key"),
    wrong_value("run many keys", lambda: run(key=jax.random.split(KEY, 3)), r"\(3,\) keys", r"one", r"key\[0\]"),
    Case(
        "run many raw keys",
        lambda: run(key=jax.random.split(jax.random.PRNGKey(0), 3)),
        Exception,
        r"key",
        r"expected one",
        r"key\[0\]|jax\.random\.key",
    ),
    wrong_type("run method class", lambda: run(ps.MKSVGD), r"MKSVGD", r"method", r"MKSVGD\(\)"),
    wrong_type("run method string", lambda: run("svgd"), r"'svgd'", r"method", r"SVGD\(\)"),
    wrong_type("run method kernel", lambda: run(ps.RBF()), r"RBF", r"method", r"SVGD\("),
    wrong_type("run target function", lambda: run(of=density), r"density", r"[Tt]arget", r"Target\.of\("),
    wrong_type("run target class", lambda: run(of=ps.Target), r"Target", r"[Tt]arget", r"Target\.of\("),
    wrong_type("run arguments swapped", lambda: run(target(), ps.SVGD()), r"Target", r"method", r"SVGD\(|run\("),
    wrong_type("run optim step size", lambda: run(optim=0.05), r"0\.05", r"optax|optimiser", r"optax\."),
    wrong_type("run optim zero", lambda: run(optim=0.0), r"0\.0", r"optax|optimiser", r"optax\."),
    wrong_type("run optim string", lambda: run(optim="adam"), r"'adam'", r"optax|optimiser", r"optax\."),
    wrong_type("run optim uncalled", lambda: run(optim=optax.adam), r"adam", r"optax|optimiser", r"optax\.|call"),
    wrong_type("run pairs class", lambda: run(pairs=ps.Dense), r"Dense", r"pairs", r"Dense\(\)"),
    wrong_type("run pairs string", lambda: run(pairs="tiled"), r"'tiled'", r"pairs", r"Tiled\(\)|Dense\(\)"),
    wrong_value(
        "run kernel centre of another dimension",
        lambda: run(ps.SVGD(ps.Linear(centre=np.zeros(3)))),
        r"\(3,\)",
        r"expected",
        r"centre|give|pass|use",
    ),
    *whole_cases("run chunk", lambda n: run(chunk=n))[:2],
    wrong_value("run chunk 0", lambda: run(chunk=0), r"chunk=0", r"at least 1", r"try chunk"),
    wrong_type("run callback alone", lambda: run(callbacks=print), r"print", r"functions|list|sequence", r"\[|list"),
    wrong_type("run callbacks called", lambda: run(callbacks=[print("", end="")]), r"None", r"function", r"\[|list|lambda"),
    wrong_type("run checkpoint number", lambda: run(checkpoint=3), r"3", r"path|file", r"checkpoint="),
    wrong_type("load a number", lambda: ps.load(3), r"path=3", r"name of a file", r"write"),
    wrong_type("run geometry string", lambda: run(geometry="whiten"), r"'whiten'", r"geometry", r"\(\)|write"),
    wrong_value("Tiled rows 0", lambda: ps.Tiled(rows=0), r"0", r"at least 1", r"try"),
    wrong_value("Tiled cols negative", lambda: ps.Tiled(cols=-4), r"-4", r"at least 1", r"try"),
    wrong_type("Tiled rows float", lambda: ps.Tiled(rows=64.0), r"64\.0", r"int", r"try"),
    wrong_type("Tiled cols nan", lambda: ps.Tiled(cols=float("nan")), r"nan", r"int", r"try"),
    wrong_type("Tiled rows string", lambda: ps.Tiled(rows="64"), r"'64'", r"int", r"try"),
    wrong_type("Tiled rows none", lambda: ps.Tiled(rows=None), r"None", r"int", r"try"),
]

CASES = [*KERNELS, *BANKS, *BANDWIDTHS, *DISCREPANCIES, *METHODS, *TARGETS, *OTHER_TARGETS, *RUNS]

# What must pass: the checks refuse mistakes, not styles -------------------------------------------------------

FINE: dict[str, Callable[[], Any]] = {
    "h of every numeric kind": lambda: [
        ps.RBF(h) for h in (2, True, 2.0, np.float64(2), np.int32(2), jnp.asarray(2), [2.0][0])
    ],
    "h traced": lambda: jax.jit(lambda h: ps.RBF(h)(jnp.zeros(2), jnp.ones(2)))(-1.0),
    "h batched": lambda: jax.vmap(lambda h: ps.RBF(h)(jnp.zeros(2), jnp.ones(2)))(jnp.ones(3)),
    "gradient in h": lambda: jax.grad(lambda h: ps.ksd(X, -X, ps.RBF(h)).value)(1.0),
    "gradient in w": lambda: jax.grad(lambda w: ps.mksd(X, -X, ps.Bank.dyadic(1.0, 0, 1), w).value)(jnp.ones(2)),
    "lists for arrays": lambda: ps.ksd(X.tolist(), (-X).tolist(), ps.RBF()),
    "float64 samples": lambda: ps.ksd(X.astype(float), -X, ps.RBF()),
    "a target for scores": lambda: ps.ksd(X, target(), ps.RBF()),
    "minibatches in halves": lambda: run(
        ps.MKSVGD(ps.Bank.dyadic(1.0, 0, 1), Paper(statistic=ps.TwoBatch())), minibatched(halves=True)
    ),
    "samples traced": lambda: jax.jit(lambda x: ps.ksd(x, -x, ps.RBF()).value)(X),
    "one sample under V": lambda: ps.ksd(X[:1], -X[:1], ps.RBF(), statistic=ps.V()).value,
    "coincident samples": lambda: ps.ksd(X * 0, X * 0, ps.Matern32(), statistic=ps.V()).value,
    "a rough kernel in SVGD": lambda: run(ps.SVGD(ps.Laplace())),
    "a rough kernel's gram": lambda: ps.Laplace().gram(jnp.asarray(X), jnp.asarray(X)),
    "a smooth Function": lambda: ps.ksd(X, -X, ps.Function(lambda x, y: 1 / (1 + jnp.sum((x - y) ** 2)))),
    "a narrow smooth Function": lambda: ps.ksd(X, -X, ps.Function(lambda x, y: jnp.exp(-1e4 * jnp.sum((x - y) ** 2)))),
    "a wide smooth Function": lambda: ps.ksd(X, -X, ps.Function(lambda x, y: jnp.exp(-1e-6 * jnp.sum((x - y) ** 2)))),
    "a Function that is not stationary": lambda: ps.ksd(X, -X, ps.Function(lambda x, y: (1 + x @ y) ** 3)),
    "a constant Function": lambda: ps.ksd(X, -X, ps.Function(lambda x, y: 1.0)),
    "weights as a list": lambda: ps.Bank.dyadic(1.0, 0, 1).mix([1, 0]),
    "weights all zero": lambda: ps.Bank.dyadic(1.0, 0, 1).mix([0.0, 0.0]),
    "sum of kernels": lambda: ps.RBF() + ps.IMQ(),
    "kernel times zero": lambda: 0 * ps.RBF(),
    "low and high from numpy": lambda: ps.Bank.dyadic(1.0, np.int64(-1), np.int64(1)),
    "counts from numpy": lambda: run(particles=np.int64(4), steps=np.int32(1)),
    "count as a jax scalar": lambda: run(particles=jnp.asarray(4), steps=1),
    "zero steps": lambda: run(steps=0),
    "one particle": lambda: run(ps.MKSVGD(), particles=1),
    "raw key": lambda: run(key=jax.random.PRNGKey(0)),
    "particles as a list": lambda: run(particles=X.tolist()),
    "particles all equal": lambda: run(ps.MKSVGD(), particles=X * 0),
    "flat density": lambda: run(of=ps.Target.of(lambda x: 0.0, jnp.zeros(2))),
    "density that ignores a leaf": lambda: run(of=ps.Target.of(lambda p: -(p["a"] ** 2), {"a": 0.0, "b": 0.0})),
    "tiles larger than the sample": lambda: run(pairs=ps.Tiled(100, 100)),
    "tiles smaller than the sample": lambda: run(pairs=ps.Tiled(4, 4)),
}


def test_ids_are_unique():
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id.replace(" ", "-"))
def test_message_has_three_parts(case: Case):
    with pytest.raises(case.exception) as raised:
        jax.block_until_ready(jax.tree.leaves(case.call()))
    assert raised.type in (ValueError, TypeError)
    for part in (case.given, "expected", case.expected, case.remedy):
        assert re.search(part, str(raised.value)), f"no {part!r} in: {raised.value}"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("call", FINE.values(), ids=(id.replace(" ", "-") for id in FINE))
def test_what_is_no_mistake_passes(call: Callable[[], Any]):
    jax.block_until_ready(jax.tree.leaves(call()))
