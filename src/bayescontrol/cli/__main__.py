"""`python -m bayescontrol.cli` is the command `bayescontrol`."""

from bayescontrol.cli.main import main

if __name__ == "__main__":
    main()
