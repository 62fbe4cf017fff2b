"""The command line: ``python -m framegate doctor``."""

from __future__ import annotations

import argparse
import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status is 0 if all is well, 1 if a self-test failed, 2 for a usage error."""
    parser = argparse.ArgumentParser(prog="python -m framegate", description="Tools for framegate.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="versions, what is supported, what is switched on, and a self-test")
    commands.add_parser("config", help="the flags with their values and meaning")
    arguments = parser.parse_args(argv)
    if arguments.command == "config":
        from framegate import config

        print(config.describe())
        return 0
    from framegate import _doctor

    return 0 if _doctor.report() else 1


if __name__ == "__main__":
    sys.exit(main())
