"""The command `bayescontrol`, also as `python -m bayescontrol.cli`."""

import sys


def main() -> None:
    """Run the command line; without the extra that it needs, print how to install it."""
    try:
        from bayescontrol.cli.main import main as commands
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        from bayescontrol.errors import MissingExtra

        sys.exit(f"Error: {MissingExtra.of('the command line', 'rich', 'lab')}")
    commands()


if __name__ == "__main__":
    main()
