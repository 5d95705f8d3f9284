"""Numbers of things, as one says them."""


def counted(n: int, thing: str) -> str:
    """So many of a thing.

    >>> counted(1, "state"), counted(2, "state")
    ('1 state', '2 states')
    """
    return f"{n} {thing}{'s' * (n != 1)}"
