"""The live page: one HTML file, with its style and its script, that asks only its own server.

It reads `events` beside itself, a stream of server-sent events. The page itself says nothing
secret and is served to anyone; the stream may ask for a token (401), which the page then sends
as `Authorization: Bearer …`, never in the address. Two kinds of events:

    event: agents       once a second, also when nothing has changed: it is the heartbeat
    data: [{"name": "checkout", "model": "bernoulli-bandit 2",
            "decisions": 812, "observations": 790, "pending": 22, "rate_per_s": 40.5,
            "modes": [{"name": "red", "weight": null, "mean": 0.31, "low": 0.27, "high": 0.35}],
            "measure": {"name": "mean reward", "unit": "reward"},
            "probabilities": {"red": 0.93, "blue": 0.07}, "remarks": [],
            "surprise_bits": 0.88, "regret": 3.5,
            "alarm": {"raised": false, "evidence_bits": 1.2, "threshold_bits": 9.97}}]

    event: decision     a sample: about twenty a second, and one a second of each agent
    data: {"agent": "checkout", "id": "17", "action": "red", "probability": 0.93,
           "time": 1700000000.5}

    modes              arms have a mean and the central 95 % interval low … high; modes of a finite
                       class a weight P(m | âo_≤t); of another posterior, each number its mean.
                       What there is none of is null.
    measure            what the means are means of; null if there are none
    remarks            why something is not shown
    probabilities      P(a | âo_<t) by the action as text; null if they need a situation
    surprise_bits      -log2 P(o_t | âo_<t â_t), of the last observation or a mean of the last few
    alarm              null if the agent has none; threshold_bits, log2 1/δ, may be missing
    regret             Σ_t (best mean - mean of a_t), null where the truth is not known
    time               seconds since 1970

Every number but the counts may be null: JSON has no infinity. Data must be one line of JSON. An
answer other than 200 is tried again, after `Retry-After` if it says so.

The page also opens a log that was exported as lines of JSON (`durable.events.to_line`), dropped
or chosen, with or without a server: saved as a file it does so too. It reads counts, not
checksums.
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Final

from bayescontrol.report.palette import DARK, DARK_GROUND, LIGHT, LIGHT_GROUND

__all__ = ["headers", "page"]

#: In the order in which they need each other.
_SCRIPTS: Final = (
    "dom.js",
    "charts.js",
    "figure.js",
    "stream.js",
    "agents.js",
    "live.js",
    "posterior.js",
    "log.js",
    "history.js",
    "page.js",
)


@cache
def page() -> str:
    """The whole page as HTML.

    >>> html = page()
    >>> html.startswith("<!doctype html>"), "http://" in html.replace("http://www.w3.org/", "")
    (True, False)
    """
    style, script = _style(), _script()
    html = _file("index.html").replace("@policy@", escape(_policy()))
    return html.replace("@style@", style).replace("@script@", script)


def headers() -> dict[str, str]:
    """What a server sends with the page: the browser runs its own script, and no other.

    >>> "connect-src 'self'" in headers()["Content-Security-Policy"]
    True
    """
    return {
        "Content-Type": "text/html; charset=utf-8",
        # Only a header may say this: a page in another's frame could be made to be clicked.
        "Content-Security-Policy": f"{_policy()}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


def _policy() -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(_script())}'",
            f"style-src '{_digest(_style())}'",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")


@cache
def _script() -> str:
    return "\n" + "\n".join(_file(name) for name in _SCRIPTS)


@cache
def _style() -> str:
    light, dark = _colours(LIGHT, LIGHT_GROUND), _colours(DARK, DARK_GROUND)
    slots = "".join(f".c{i} {{ --c: var(--{name}); }}\n" for i, name in enumerate(LIGHT))
    inverted = f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    return f"\n:root {{ {light} }}\n{inverted}\n{slots}{_file('page.css')}"


def _colours(*palettes: Mapping[Any, str]) -> str:
    return " ".join(f"--{name}: {hue};" for colours in palettes for name, hue in colours.items())
