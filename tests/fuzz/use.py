"""Everything that can be read of an atlas, each as a digest or as the error it ended in."""

import hashlib
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import attention_atlas as aa
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import pack
from attention_atlas.store.all_places import read_all_places
from attention_atlas.store.maps import read_map

REFUSED, SAME, CHANGED, OTHER, HUNG = (
    "refused by a sentence", "no effect", "other values", "another error", "hung",
)  # fmt: skip
SECONDS = 60
Result = str | BaseException


class TooLong(BaseException):
    """A case took longer than a person would wait."""


class _RefusedError(Exception):
    """The atlas was refused, and nothing more is asked of it."""


@contextmanager
def time_limit(seconds: int = SECONDS) -> Iterator[None]:
    """Raise TooLong in what takes longer."""

    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def use(
    folder: Path, until_refused: bool = False, before: dict[str, Result] | None = None
) -> dict[str, Result]:
    """Read all of an atlas; name → digest or error.

    until_refused  stop at the first of our own errors
    before         what the whole atlas gave: what it refused is not asked for again
    """
    results: dict[str, Result] = {}
    refused = {name for name, given in (before or {}).items() if isinstance(given, Exception)}

    def note(name: str, make: Callable[[], Any]) -> None:
        if name in refused:
            return
        try:
            results[name] = _digest(make())
        except Exception as problem:
            results[name] = problem
            if until_refused and isinstance(problem, aa.AtlasError):
                raise _RefusedError from problem

    try:
        atlas = aa.open(folder)
    except Exception as problem:
        return {"open": problem}
    names = [str(name) for name in _or_none(lambda: atlas.heads()["head"]) or ()]
    reads: dict[str, Callable[[], Any]] = {
        "repr": lambda: repr(atlas), "heads": lambda: atlas.heads().to_csv(),
        "inputs": lambda: atlas.inputs().to_csv(), "tokens": lambda: atlas.tokens().to_csv(),
        "scores": lambda: _scores(atlas), "relations": lambda: _csv(atlas.relations()),
        "receipt": lambda: atlas.receipt.line + atlas.receipt.rows_line,
        "output": lambda: [
            atlas.output.projection(tower.name, layer.layer).matrix
            for tower in atlas.towers for layer in tower.layers
        ],
        "pictures": lambda: [atlas.picture(i).read_bytes() for i in range(len(atlas))],
    }  # fmt: skip
    for head in names:
        for what in ("weights", "queries", "keys", "values"):
            method = getattr(atlas, what)
            call = (lambda m, h: lambda: m(0, h)) if what == "weights" else _vectors
            reads[f"{what} {head}"] = call(method, head)
        reads[f"terms {head}"] = partial(_terms, atlas, head)
        reads[f"overview {head}"] = partial(_overview, atlas, head)
    reads["attribution"] = lambda: [*map(str, vars(atlas.attribution(0)).values())]
    for path in sorted((folder / "layouts").glob("*.safetensors")):
        reads[path.name] = partial(_map, path)
    for path in sorted((folder / "layouts").glob("*/*.safetensors")):
        reads[path.name] = partial(_places, path)
    with suppress(_RefusedError), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of numbers that were made NaN
        for name, make in reads.items():
            note(name, make)
        _note_page(atlas, note)
    return results


def outcome(before: dict[str, Result], after: dict[str, Result]) -> tuple[str, str]:
    """Return what damage led to, and the first trouble."""
    for name, result in after.items():
        if isinstance(result, BaseException) and not isinstance(result, aa.AtlasError):
            return OTHER, f"{name}: {result!r}"
    for name, result in after.items():
        if isinstance(result, aa.AtlasError):
            return REFUSED, f"{name}: {result}"
    whole = {name: given for name, given in before.items() if isinstance(given, str)}
    changed = [name for name in {**whole, **after} if whole.get(name) != after.get(name)]
    return (CHANGED, f"{changed[:5]}") if changed else (SAME, "")


def _note_page(atlas: aa.Atlas, note: Callable[[str, Callable[[], Any]], None]) -> None:
    """Ask for what a saved page holds, two packets of each kind."""
    try:
        answers = Answers(atlas)
        saving = Saving(atlas, {}, range(len(atlas)), exact=True, folder=True)
        paths = [path for row in PACKETS.values() for path in islice(row.saved(saving), 2)]
    except Exception as problem:
        raised = problem

        def fail() -> None:
            raise raised

        note("page", fail)
        return
    for path in paths:
        note(path, lambda path=path: pack(answers.answer(path)))  # type: ignore[misc]


def _vectors(method: Any, head: str) -> Callable[[], Any]:
    return lambda: method(head)


def _terms(atlas: aa.Atlas, head: str) -> Any:
    return [str(value) for value in vars(atlas.terms(head, 0)).values()]


def _overview(atlas: aa.Atlas, head: str) -> Any:
    return [str(value) for value in vars(atlas.pyramid(0, head).overview()).values()]


def _scores(atlas: aa.Atlas) -> str:
    scores = atlas.scores()
    return "" if scores is None else scores.table.to_csv() + scores.kinds.to_csv()


def _csv(frame: Any) -> str:
    return "" if frame is None else frame.to_csv()


def _map(path: Path) -> Any:
    made = read_map(path)
    return [repr(made.options), *(vars(group) for group in made.groups.values())]


def _places(path: Path) -> Any:
    return vars(read_all_places(path))


def _or_none(make: Callable[[], Any]) -> Any:
    try:
        return list(make())
    except Exception:
        return None


def _digest(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{key}:{_digest(inner)}" for key, inner in value.items()]
    if isinstance(value, list | tuple):
        value = "\n".join(_digest(inner) for inner in value)
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    data = value if isinstance(value, bytes) else value.tobytes()
    return hashlib.sha256(data).hexdigest()
