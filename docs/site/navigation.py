"""Which pages does the site have, and in which order? Paths are those of the repository."""

Section = dict[str, str]

SECTIONS: dict[str, Section] = {
    "Start": {
        "Attention Atlas": "README.md",
        "A tour in ten minutes": "docs/tour.md",
        "Live pages": "docs/live.md",
        "Gallery": "docs/gallery.md",
        "Words": "docs/glossary.md",
    },
    "Notebooks": {
        "Text in five lines": "docs/notebooks/text.md",
        "Maps": "docs/notebooks/maps.md",
        "Pictures": "docs/notebooks/vision.md",
        "Heads": "docs/notebooks/heads.md",
        "The lab": "docs/notebooks/lab.md",
        "Scale": "docs/notebooks/scale.md",
    },
    "Look": {
        "Reading a map": "docs/map.md",
        "Maps made of attention": "docs/attention-maps.md",
        "Layouts": "docs/layouts.md",
        "Pictures": "docs/vision.md",
        "The Image tab": "docs/images.md",
        "Long inputs": "docs/long-inputs.md",
        "Several tokens at once": "docs/token-sets.md",
    },
    "Measure": {
        "Scores": "docs/heads.md",
        "Kinds of heads": "docs/kinds.md",
        "Importance on real models": "docs/importance.md",
        "What a head moves": "docs/contributions.md",
        "Why a head looks there": "docs/directions.md",
        "Over checkpoints": "docs/checkpoints.md",
    },
    "Change": {
        "The Lab": "docs/lab.md",
        "Edits": "docs/edits.md",
        "Causal importance": "docs/causal.md",
        "Patching": "docs/patching.md",
        "Saved tests": "docs/tests.md",
        "Training single heads": "docs/local-heads.md",
    },
    "Size and safety": {
        "How capture works": "docs/capture.md",
        "Large models": "docs/large-models.md",
        "Many machines": "docs/cluster.md",
        "Serving": "docs/serving.md",
        "Damaged and hostile files": "docs/safety-files.md",
    },
    "Elsewhere": {
        "Agents": "docs/agents.md",
        "The skill of an agent": "docs/skill/SKILL.md",
        "Other tools' files": "docs/ways.md",
        "Questions to the tables": "docs/queries.md",
        "Notebooks and their hosts": "docs/notebooks-hosts.md",
    },
    "Reference": {
        "Python": "docs/api.md",
        "The command line": "docs/command-line.md",
        "The atlas folder": "docs/format.md",
        "The built-in models": "training/README.md",
    },
    "Add": {
        "A measure": "docs/adding/measure.md",
        "A layout": "docs/adding/layout.md",
        "A tab": "docs/adding/tab.md",
        "A hook or an edit": "docs/adding/edit.md",
        "How to contribute": "CONTRIBUTING.md",
    },
}
# Folders whose pages follow by their own titles, and the pages at the end.
LAST: Section = {"Where we are": "docs/state.md", "What has changed": "CHANGELOG.md"}


def navigation(pages: dict[str, str]) -> list[dict[str, list[dict[str, str]]]]:
    """Order the pages of the site, given as path and title; returns what the builder takes.

    Benchmarks, and any page that no section names, follow by their own titles.
    """
    named = {path for section in SECTIONS.values() for path in section.values()}
    named |= set(LAST.values())
    rest = {path: title for path, title in sorted(pages.items()) if path not in named}
    benchmarks = [{title: path} for path, title in rest.items() if path.startswith("benchmarks/")]
    others = [{title: path} for path, title in rest.items() if not path.startswith("benchmarks/")]
    last = [{title: path} for title, path in LAST.items()]
    sections = {name: _entries(section) for name, section in SECTIONS.items()}
    sections |= {"Benchmarks": benchmarks, "More": others + last}
    return [{name: entries} for name, entries in sections.items()]


def _entries(section: Section) -> list[dict[str, str]]:
    return [{title: path} for title, path in section.items()]
