"""What does a view function return? A View: a notebook shows it, and it saves itself as a file.

view.save("page.html" | "figure.svg" | "figure.png")        view.picks
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attention_atlas.names.arguments import checked_methods, shown
from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire.picks import read_picks

_ENDINGS = (".html", ".svg", ".png")


class Html:
    """A page as text in `.data`, as BertViz returns it."""

    def __init__(self, data: str):
        self.data = data

    def _repr_html_(self) -> str:
        from html import escape

        return (
            f'<iframe srcdoc="{escape(self.data)}" sandbox="allow-scripts" '
            'style="width:100%;height:640px;border:0"></iframe>'
        )


@checked_methods({})
class View:
    """A view of an atlas or of plain attention; a notebook shows it."""

    def __init__(self, subject: Subject, picks: dict[str, Any], model: Any = None):
        self.subject = subject
        self._picks = read_picks(picks)
        self._model = model
        self._widget: Any = None

    def __repr__(self) -> str:
        tab = self._picks["tab"]
        kind = self._picks["view"] if tab == "text" else tab
        return f"<View: {kind} of {self.subject!r}>"

    @property
    def picks(self) -> dict[str, Any]:
        """Get what the person picked: head, token, hidden tokens and so on."""
        return dict(self._widget.picks if self._widget is not None else self._picks)

    @picks.setter
    def picks(self, picks: dict[str, Any]) -> None:
        if not isinstance(picks, Mapping):
            raise InputError(f"picks is {shown(picks)}; give a dict, as view.picks is")
        self._picks = read_picks({**self.picks, **picks})
        if self._widget is not None:
            self._widget.picks = self._picks

    @property
    def widget(self) -> Any:
        """Get the notebook widget of the view; it is made on first use."""
        if self._widget is None:
            from attention_atlas.page.hosts.widget import AtlasWidget
            from attention_atlas.page.live.model import LiveModel

            options = {"tab": self._picks["tab"], "chrome": "cell"}
            model = None if self._model is None else LiveModel(self._model)
            self._widget = AtlasWidget(self.subject, dict(self._picks), options, model)
        return self._widget

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    def _display_(self) -> Any:
        """Return the widget: marimo asks for what it shows in place of an object."""
        return self.widget

    def save(self, path: str | Path, exact: bool = False) -> Path:
        """Write page.html, figure.svg or figure.png; `exact` puts whole rows into the page."""
        target = Path(path)
        if target.suffix not in _ENDINGS:
            raise InputError(
                f"cannot save {target.name}; its name must end in {', '.join(_ENDINGS)}"
            )
        if target.suffix == ".html":
            from attention_atlas.page.hosts.export import save_page

            save_page(target, self.subject, self.picks, exact=exact)
        else:
            from attention_atlas.page.hosts.figure import save_figure

            save_figure(target, self.subject, self.picks)
        return target

    def html(self, exact: bool = False) -> Html:
        """Return the saved page as text."""
        from attention_atlas.page.hosts.export import page_pieces

        return Html(b"".join(page_pieces(self.subject, self.picks, exact=exact)).decode())


def view_or_html(view: View, html_action: str | None) -> Any:
    """Return the view, or do what BertViz's html_action says: return its page or display it."""
    if html_action == "return":
        return view.html()
    if html_action == "view":
        from IPython.display import display

        display(view)
        return None
    if html_action is not None:
        raise InputError(f"html_action is {html_action!r}; there is 'view' and 'return'")
    return view
