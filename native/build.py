"""Compiles the sweep with the C++ compiler at hand, once for each instruction set of this kind of processor."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fopenmp-simd", "-w"]
# Linked in this order: of an inline function of the standard library that several hold, the linker keeps the first, and that
# must not be one for a processor which is not there.
PLAIN = {"plain": []}
X86 = PLAIN | {"avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"]}


class NativeBuildHook(BuildHookInterface):
    """Adds the compiled library to the wheel."""

    def dependencies(self) -> list[str]:
        """XLA's headers, where the environment that is installed into has none."""
        return [] if headers() else ["jaxlib>=0.9.0"]

    def initialize(self, version: str, build_data: dict) -> None:
        """Compile and link."""
        del version
        folder = Path(tempfile.mkdtemp())
        library = compiled(folder)
        build_data["force_include"][str(library)] = f"polystein_native/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def headers() -> Path | None:
    """The folder of XLA's headers: of the JAX that the library will run under if it is there, else of this build's own."""
    try:
        import jaxlib

        own = [Path(jaxlib.__file__).parent]
    except ImportError:
        own = []
    installed = [Path(sysconfig.get_path(kind)) / "jaxlib" for kind in ("platlib", "purelib")]
    return next((p / "include" for p in [*installed, *own] if (p / "include" / "xla").is_dir()), None)


def compiler() -> list[str]:
    """$CXX, or the first of the usual names that is there."""
    if named := os.environ.get("CXX"):
        return shlex.split(named)
    for name in ("c++", "g++", "clang++"):
        if found := shutil.which(name):
            return [found]
    raise SystemExit(
        "no C++ compiler: looked for c++, g++ and clang++; polystein-native needs one that knows C++17; install it (Debian: "
        "apt-get install g++; macOS: xcode-select --install), or name it: CXX=/path/to/compiler pip install ./native"
    )


def compiled(folder: Path) -> Path:
    """The library, of one object for each instruction set and one that chooses among them."""
    cxx, include = compiler(), headers()
    if include is None:
        raise SystemExit("no headers of XLA: looked for jaxlib in this environment and in the build's; try pip install jax")
    targets = X86 if platform.machine().lower() in ("x86_64", "amd64") else PLAIN
    jobs = [["src/ffi.cpp", "-I", str(include)]]
    jobs += [["src/kernel.cpp", f"-DTARGET={name}", *flags] for name, flags in targets.items()]
    objects = [folder / f"{i}.o" for i in range(len(jobs))]

    def run(*arguments: str) -> None:
        done = subprocess.run([*cxx, *arguments], cwd=HERE, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join([*cxx, *arguments])} failed; expected a C++17 compiler:\n{done.stderr[-4000:]}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda job, out: run(*FLAGS, *job, "-c", "-o", str(out)), jobs, objects))
    library = folder / f"_sweep{'.dylib' if platform.system() == 'Darwin' else '.so'}"
    run("-shared", "-o", str(library), *map(str, objects))
    return library
