"""What does axe, the checker of accessibility, find wrong on a page?"""

from functools import cache
from typing import Any

from playwright.sync_api import Page

from hatch_build import ROOT

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Tokens of the Reading view stand in a running text, where WCAG asks no size of a target (2.5.8,
# inline); axe cannot tell since they are buttons.
IN_TEXT = "aa-word"


@cache
def _script() -> str:
    return (ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def violations(page: Page) -> list[str]:
    """Run axe on the whole page; returns a line for each element that breaks a rule."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_script())
    found: dict[str, Any] = page.evaluate("tags => axe.run(document, {runOnly: tags})", RULES)
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:160]}"
        for rule in found["violations"]
        for node in rule["nodes"]
        if not (rule["id"] == "target-size" and IN_TEXT in node["html"])
    ]
