"""The live page: one HTML file with its style and script, which only contacts its own server.

It reads a stream of server-sent events from `events`. The page itself contains no secrets and needs
no token. If the stream needs one (401), the page sends it as `Authorization: Bearer …`, never in
the URL. There are two kinds of events:

    event: agents       once a second, even if nothing has changed
    data: [{"name": "checkout", "model": "bernoulli-bandit 1",
            "decisions": 812, "observations": 790, "pending": 22, "events": 1603,
            "rate_per_s": 40.5,
            "modes": [{"name": "red", "weight": null, "mean": 0.31, "low": 0.27, "high": 0.35}],
            "measure": {"name": "mean reward", "unit": "reward"},
            "probabilities": {"red": 0.93, "blue": 0.07}, "remarks": [],
            "surprise_bits": 0.88, "regret": 3.5,
            "alarm": {"raised": false, "evidence_bits": 1.2, "threshold_bits": 9.97}}]

    event: decision     a sample: about twenty a second, and one a second of each agent
    data: {"agent": "checkout", "id": "k3v7p2dq4m-17", "action": "red", "probability": 0.93,
           "time": 1700000000.5}

    events             the number of events of the log, which the page reads from /v1/agents
    modes              arms have a mean and the central 95 % interval low … high; modes of a finite
                       class have a weight P(m | âo_≤t); other parameters have a mean.
                       Missing numbers are null.
    measure            the name and unit of the means; null without means
    remarks            why something is not shown
    probabilities      P(a | âo_<t) by the action as text; null if they need a situation
    surprise_bits      -log2 P(o_t | âo_<t â_t), averaged over recent observations
    alarm              null if the agent has none; threshold_bits, log2 1/δ, may be missing
    regret             Σ_t (best mean - mean of a_t), null if the true means are unknown
    time               seconds since 1970

All numbers except counts may be null, because JSON has no infinity. Data is one line of JSON.
After an answer other than 200 the page tries again, after `Retry-After` if given.

The page can also open a log that was exported as lines of JSON (`durable.events.to_line`), with or
without a server. It reads counts and does not verify checksums.
"""

import base64
import hashlib
from functools import cache
from html import escape
from importlib import resources
from typing import Final

from bayescontrol.plot.palette import LIGHT, style_sheet

__all__ = ["digest", "headers", "page"]

#: In the order of their dependencies.
_SCRIPTS: Final = ("dom", "charts", "figure", "stream", "agents", "posterior", "log", "logs",
                   "live", "history", "page")  # fmt: skip


@cache
def page() -> str:
    """Return the page as HTML.

    >>> html = page()
    >>> html.startswith("<!doctype html>"), "http://" in html.replace("http://www.w3.org/", "")
    (True, False)
    """
    html = _file("index.html").replace("@policy@", escape(_content_security_policy()))
    return html.replace("@style@", _style()).replace("@script@", _script())


def headers(policy: str | None = None) -> dict[str, str]:
    """Return the HTTP headers of the live page, or of a page with another policy.

    The browser runs only the scripts that the policy allows.

    >>> "connect-src 'self'" in headers()["Content-Security-Policy"]
    True
    """
    policy = policy or _content_security_policy()
    return {
        "Content-Type": "text/html; charset=utf-8",
        # frame-ancestors only works in a header; it prevents clickjacking.
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


def _content_security_policy() -> str:
    """Return the policy that allows only the script and the style of the page, by their digests."""
    return (
        "default-src 'none'; "
        f"script-src '{digest(_script())}'; style-src '{digest(_style())}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )


def digest(text: str) -> str:
    """Return the digest of an inline script or style, as a policy names it.

    >>> digest("")
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")


@cache
def _script() -> str:
    return "\n" + "\n".join(_file(f"{name}.js") for name in _SCRIPTS)


@cache
def _style() -> str:
    slots = "".join(f".c{i} {{ --c: var(--{name}); }}\n" for i, name in enumerate(LIGHT))
    return f"\n{style_sheet()}{slots}{_file('page.css')}"
