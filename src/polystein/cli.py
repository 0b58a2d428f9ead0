"""The command line: ``polystein COMMAND``, each command registered by a module of its own.

A command is a module with ``add(commands)``, which adds a parser to argparse's ``commands`` and sets its default ``run``, a
function of what was given that returns the exit status. Everything heavy is imported inside ``run``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from polystein.experiments import command as reproduce
from polystein.quality import command as check

COMMANDS = (reproduce, check)
FAILED, MISUSED, INTERRUPTED = 1, 2, 130


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what was wrong with the command, and where to read what would be right."""
        self.exit(MISUSED, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 where it went well, 1 where it could not be done, 2 where the command was wrong.

    >>> main(["reproduce", "gaussian", "--trials", "0"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    commands = parser()
    given = commands.parse_args(arguments)
    try:
        return given.run(given)
    except argparse.ArgumentError as wrong:  # what only the command itself could see
        commands.error(str(wrong))
    except KeyboardInterrupt as stop:
        return _complain(str(stop) or "interrupted", INTERRUPTED)
    except (ImportError, OSError) as trouble:
        return _complain(str(trouble), FAILED)


def parser() -> Parser:
    """The parser of every command.

    >>> parser().parse_args(["reproduce", "gaussian"]).experiment
    'gaussian'
    """
    whole = Parser(prog="polystein", description="Posteriors from particles moved by many kernels.")
    whole.add_argument("--version", action="version", version=f"%(prog)s {version('polystein')}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return whole


def _complain(sentence: str, status: int) -> int:
    print(f"polystein: {sentence}", file=sys.stderr)
    return status
