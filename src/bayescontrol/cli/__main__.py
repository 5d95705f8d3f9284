"""`python -m bayescontrol.cli` is `bayescontrol`."""

from bayescontrol.cli import main

if __name__ == "__main__":
    main()
