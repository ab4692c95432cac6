"""What is the HTML of a served page? A shell that asks for what a link shows before all else.

A small script stands inside it (`web/src/source/early.ts`), before the style sheet, for which it
would wait. So the packets of a link are asked for while the browser still fetches and reads the
page's own script. The shell says enough of the atlas to read a link: its first tower, how many
inputs there are, and whether contributions can be shown. Nothing is said where some input is long:
what is asked for then depends on it.
"""

from html import escape

import numpy as np

from attention_atlas.names.errors import AtlasError
from attention_atlas.page.answers.moved import why_not_moved
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.wire.constants import LONG_INPUT
from attention_atlas.store.reader import StoredAtlas

_START = b'<html lang="en"'
_EARLY = b"<!--ATLAS-EARLY-->"


def early_script() -> bytes:
    """Return the script that stands inside the page; nothing in it ends the element around it."""
    return static("early.js").read_bytes().strip().replace(b"</script", b"<\\/script")


def page_html(subject: Subject) -> bytes:
    """Return the HTML of a subject's page."""
    script = b"<script>" + early_script() + b"</script>"
    html = static("page.html").read_bytes().replace(_EARLY, script, 1)
    try:
        facts = _facts(subject)
    except AtlasError:  # a damaged file; the page says so
        return html
    told = "".join(f' data-{name}="{escape(fact)}"' for name, fact in facts.items())
    return html.replace(_START, _START + told.encode(), 1)


def _facts(subject: Subject) -> dict[str, str]:
    if not isinstance(subject, StoredAtlas) or not subject.towers:
        return {}
    counts = np.bincount(subject.tokens()["input"].to_numpy(), minlength=1)
    if counts.max() > LONG_INPUT:
        return {}
    moved = {} if why_not_moved(subject) else {"moved": "yes"}
    return {"tower": subject.towers[0].name, "inputs": str(subject.manifest.inputs), **moved}
