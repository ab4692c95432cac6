"""What is in this atlas, is it exact, and how is it read?"""

from pydantic import BaseModel

from attention_atlas.lab.saved_tests.names import shipped_names
from attention_atlas.page.agents.answer import Answer, cut, small
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.answers.about import about_session

_NOTES = 8  # sentences about the atlas
_NOTE = 200  # characters of each
READING = (
    "A head is L5H1: layer 5, head 1, both from zero; with several towers cross.L5H1.",
    "weights[query, key]: rows look, columns are looked at; a row sums to one (less with a sink).",
    "A space before a token is written ·.",
    "Much weight on token 0 or on a delimiter is mostly a resting place (a sink), not meaning: "
    "skip it in attention, or ask for what='contribution'.",
    "A score stands beside its chance: what an even head would get. Compare with that, not with 0.",
    "kind says what a head's weights look like over all inputs; margin is its lead over the next "
    "kind and agree the share of inputs that agree.",
    "Attention shows where a head looks, not what it is for; edit and test show what changes.",
)


class TowerLine(BaseModel):
    """A run of attention layers."""

    name: str
    role: str
    layers: int
    heads: int
    queries: str
    keys: str


class AboutAnswer(Answer):
    """What is in an atlas."""

    atlas: str
    model: str
    model_class: str
    inputs: int
    tokens: int
    heads: int
    towers: list[TowerLine]
    exact: bool
    receipt: str
    worst_error: float | None
    output_receipt: str
    edits_of_this_capture: int
    maps: list[str]
    has_scores: bool
    can_edit: bool
    why_not_edit: str = ""
    shipped_tests: list[str]
    notes: list[str]
    how_to_read: list[str]


def about(bench: AgentBench) -> AboutAnswer:
    """Say what this atlas holds, how exact it is and how its numbers are read. Start here."""
    known, atlas = about_session(bench.answers.session), bench.atlas
    towers = [
        TowerLine(
            name=tower.name, role=tower.role, layers=len(tower.layers),
            heads=sum(layer.heads for layer in tower.layers), queries=tower.queries,
            keys=tower.keys,
        )
        for tower in known.towers
    ]  # fmt: skip
    why = "" if known.can_edit else known.no_edits.replace("serve x.atlas", f"mcp {bench.name}")
    return AboutAnswer(
        atlas=bench.name, model=cut(known.model, _NOTE), model_class=known.model_class,
        inputs=len(atlas), tokens=atlas.manifest.tokens, heads=sum(each.heads for each in towers),
        towers=towers, exact=known.exact, receipt=cut(known.receipt_line, 400),
        worst_error=small(atlas.receipt.worst_error), output_receipt=cut(known.output_line, 400),
        edits_of_this_capture=len(atlas.manifest.options.get("edits", ())),
        maps=[info.name for info in known.maps], has_scores=known.can_measure,
        can_edit=known.can_edit, why_not_edit=cut(why, 400), shipped_tests=shipped_names(),
        notes=[cut(note, _NOTE) for note in known.notes[:_NOTES]], how_to_read=list(READING),
    )  # fmt: skip
