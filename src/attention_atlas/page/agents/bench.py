"""What do all tools of one server share? The atlas, its answers and, if attached, its model."""

from functools import cached_property

from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.names.token_text import shown_by_stream
from attention_atlas.page.answers.find import check_input, find_layer, find_tower
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.background import BackgroundWork
from attention_atlas.page.live.model import LiveModel
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

USUAL_ADDRESS = "http://127.0.0.1:8642/"  # of attention-atlas serve


class AgentBench:
    """One atlas as agents use it; without a model it is only read.

    page  the address of a running page of this atlas; empty if there is none
    """

    def __init__(self, atlas: StoredAtlas, model: LiveModel | None = None, page: str = ""):
        self.model, self.page = model, page
        self.answers: Answers = make_answers([atlas], [model])[0]
        subject = self.answers.session.subject
        assert isinstance(subject, Grown)
        self.atlas: Grown = subject

    @property
    def name(self) -> str:
        """Get the name of the atlas folder."""
        return self.atlas.path.name

    @property
    def work(self) -> BackgroundWork:
        """Get what can be done with the model."""
        assert self.answers.work is not None
        return self.answers.work

    def need_model(self, deed: str) -> LiveModel:
        """Return the attached model; an InputError says how to attach one."""
        if self.model is None:
            raise InputError(
                f"no model is attached, so nothing can be {deed}; start the server with: "
                f"attention-atlas mcp {self.name} --model {self.atlas.manifest.model}"
            )
        return self.model

    def find_head(self, name: str) -> tuple[Head, Tower, Layer]:
        """Find a head of the atlas; a PickError says what there is."""
        head = Head.parse(name)
        tower = find_tower(self.atlas, head.tower or self.atlas.towers[0].name)
        layer = find_layer(tower, head.layer)
        if not 0 <= head.head < layer.heads:
            raise PickError(
                f"layer {layer.layer} of {tower.name} has no head {head.head}; it has 0 to "
                f"{layer.heads - 1}"
            )
        return head, tower, layer

    def texts(self, input: int, stream: str) -> list[str]:
        """Return the tokens of a stream of an input, as a person reads them."""
        frame = self.atlas.tokens(check_input(self.atlas, input), stream)
        columns = ([stream] * len(frame), frame["text"].tolist(), frame["special"].tolist())
        return shown_by_stream(*columns)

    @cached_property
    def all_texts(self) -> list[str]:
        """Get all tokens of the folder, as a person reads them."""
        frame = self.atlas.base.tokens()
        names = ("stream", "text", "special")
        streams, raw, special = (frame[name].tolist() for name in names)
        return shown_by_stream([str(stream) for stream in streams], raw, special)
