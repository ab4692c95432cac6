"""What does Python offer? One page of all public names, from their signatures and docstrings."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import attention_atlas as aa

# Public names by what one wants to do; every name of the package stands in exactly one of them.
GROUPS = {
    "Capture, check, open": ("capture", "check", "open", "Atlas"),
    "Show": (
        "head_view", "model_view", "neuron_view", "text_view", "matrix_view", "map_view",
        "image_view", "heads_view", "View",
    ),
    "Measure and compare": ("classify", "compare"),
    "Edit": ("edit", "ablate", "scale", "mask", "pattern", "neuron", "patch"),
    "Study": ("causal", "patching", "only_heads"),
    "Names and errors": (
        "Head", "AtlasError", "InputError", "ModelError", "PickError", "StoreError",
    ),
    "Other": (),  # what has no better place
}  # fmt: skip
_WIDE = 88


def write_reference(path: Path) -> None:
    """Write the page of all public names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(reference(), encoding="utf-8")


def reference() -> str:
    """Return the page: a section a group, a part a name."""
    named = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in aa.__all__ if name not in named)
    parts = [
        "# Python",
        "Written from the docstrings of the package. `import attention_atlas as aa` loads nothing "
        "heavy; each name is loaded when it is first used.",
    ]
    for group, names in GROUPS.items():
        shown = [name for name in names if name in aa.__all__] + list(rest if not names else ())
        if shown:
            parts.append(f"## {group}")
            parts += [part for name in shown for part in _entry(name, getattr(aa, name))]
    return "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any) -> list[str]:
    """Describe one public name; of a class its methods too, of a module its own names."""
    head = [f"### aa.{name}"]
    if inspect.isclass(thing):
        members = [] if issubclass(thing, BaseException) else _members(thing)
        return [*head, _text(thing), *(line for member in members for line in member)]
    if inspect.ismodule(thing):
        own = [
            (key, value)
            for key, value in vars(thing).items()
            if not key.startswith("_") and getattr(value, "__module__", "") == thing.__name__
        ]
        inside = [line for key, value in own for line in _entry(f"{name}.{key}", value)]
        return [*head, _text(thing), *inside]
    return [*head, _call(f"aa.{name}", thing), _text(thing), *_options(name, thing)]


def _options(name: str, function: Any) -> list[str]:
    """List the keywords that a function passes on, which its signature does not name."""
    own = inspect.signature(function).parameters
    found = []
    for target in aa._OPTIONS.get(name, ()):
        module, _, inside = target.partition(":")
        taken = inspect.signature(getattr(import_module(f"attention_atlas.{module}"), inside))
        found += [_plain(str(each)) for key, each in taken.parameters.items() if key not in own]
    return ["Its options:", "```python\n" + "\n".join(found) + "\n```"] if found else []


def _members(kind: type) -> list[list[str]]:
    """Describe the public methods and properties that have a docstring, in alphabetical order."""
    found = []
    for name in sorted(dir(kind)):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        owner = kind.__name__.lower()
        title = f"#### {owner}.{name}"
        if isinstance(member, classmethod):
            found.append(
                [title, _call(f"{kind.__name__}.{name}", getattr(kind, name)), _text(member)]
            )
        elif inspect.isfunction(member):
            found.append([title, _call(f"{owner}.{name}", member), _text(member)])
        else:
            found.append([title, _text(member)])
    return found


def _call(name: str, function: Any) -> str:
    """Write how a function is called, a parameter a line where it would be too long."""
    signature = inspect.signature(function)
    taken = [each for name, each in signature.parameters.items() if name != "self"]
    kinds = [each.kind for each in taken]
    parameters = [_plain(str(each)) for each in taken]
    by_name = inspect.Parameter.KEYWORD_ONLY
    if by_name in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(by_name), "*")
    returns = signature.return_annotation
    shown = inspect.formatannotation(returns) if returns is not inspect.Signature.empty else ""
    end = f") -> {_plain(shown)}" if shown else ")"
    line = f"{name}({', '.join(parameters)}{end}"
    if len(line) > _WIDE:
        line = "\n".join([f"{name}(", *(f"    {each}," for each in parameters), end])
    return f"```python\n{line}\n```"


def _plain(annotation: str) -> str:
    """Leave modules and quotes out of the types of a signature."""
    annotation = re.sub(r"(^|: )'([^']*)'(?= = |$)", r"\1\2", annotation)
    short = re.sub(r"\b(?:[a-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", annotation)
    return re.sub(r"ForwardRef\('(\w+)'[^)]*\)", r"\1", short)


def _text(thing: Any) -> str:
    """Return a docstring as Markdown: columns that stand in line stay in line."""
    parts = re.split(r"\n\s*\n", (inspect.getdoc(thing) or "").strip())
    return "\n\n".join(_paragraph(part) for part in parts)


def _paragraph(part: str) -> str:
    if re.search(r"\S {2,}\S|^ ", part, re.MULTILINE):
        return f"```text\n{part}\n```"
    return part.replace("<", "&lt;").replace("*", r"\*")
