"""Model + inputs → atlas folder.

    load ─ read ─ probe (the receipt) ─┬─ batch ─ observe ─ spot-check ─┐
                                       │        … until a shard is full ├─ write ─ … ─ manifest
                                       └────────────────────────────────┘
Memory holds one shard at a time. A shard is a fixed run of inputs with its own batches, so a
capture that was killed and resumed writes the very same bytes.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from attention_atlas.errors import AtlasError, InputError, ModelError
from attention_atlas.models.encode import Encoded, Tokens, collate, encode
from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.models.media import open_image
from attention_atlas.models.tokens import bare_tokens
from attention_atlas.progress import bar
from attention_atlas.record.assemble import ROUNDING_LIMIT, Shard
from attention_atlas.record.call import Call
from attention_atlas.record.fingerprint import fingerprint
from attention_atlas.record.layers import layers_of
from attention_atlas.record.observe import observe
from attention_atlas.record.pieces import Forms, pieces
from attention_atlas.record.receipt import BOUNDS, Plan, probe, real_ends, worst
from attention_atlas.record.spot import spot_check
from attention_atlas.record.streams import made_tokens, sizes, token_columns
from attention_atlas.record.tables import input_row, input_table, token_table
from attention_atlas.store import manifest as m
from attention_atlas.store.atlas import Atlas, open_atlas
from attention_atlas.store.files import write_whole
from attention_atlas.store.write import Writer, is_whole

KEEP = ("query", "key", "value", "weights")
PROBED = 2  # inputs that the receipt is made on
SHARD_BYTES = 96 * 2**20


@dataclass(frozen=True)
class Options:
    """What was asked for beyond model and inputs; part of the fingerprint and of the manifest."""

    keep: tuple[str, ...]
    batch_size: int
    truncate: bool
    generate: int
    limit: int | None
    seed: int
    shard_bytes: int = SHARD_BYTES


def capture(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    path: str | Path | None = None,
    keep: tuple[str, ...] = ("query", "key", "value"),
    batch_size: int = 8,
    device: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    progress: bool = True,
    engine: str = "local",
    *,
    column: str | None = None,
    second_column: str | None = None,
    truncate: bool = False,
    generate: int = 0,
    dtype: Any = None,
    trust_remote_code: bool = False,
    gguf_file: str | None = None,
    overwrite: bool = False,
    shard_bytes: int = SHARD_BYTES,
) -> Atlas:
    """Run a model over inputs and store its attention; gives the atlas.

    Without `path` the atlas lives in a temporary folder for as long as the object does. A folder
    that a killed capture left behind is gone on with; one that is whole and equal is just opened.

    generate   let the model write that many tokens after each input and capture them as they come
    truncate   cut inputs that are too long for the model instead of refusing them
    """
    _check_options(keep, batch_size, engine)
    loaded = load(
        model, tokenizer, device=device, dtype=dtype, trust_remote_code=trust_remote_code,
        gguf_file=gguf_file,
    )  # fmt: skip
    given = read_inputs(inputs, column=column, second_column=second_column, limit=limit, seed=seed)
    options = Options(tuple(keep), batch_size, truncate, generate, limit, seed, shard_bytes)
    folder = Path(tempfile.mkdtemp(prefix="attention-atlas-") if path is None else path)
    run = Run(loaded, given, options, folder)
    if overwrite or not run.is_done():
        run.go(progress, overwrite)
    atlas = open_atlas(folder)
    if path is None:
        weakref.finalize(atlas, shutil.rmtree, folder, ignore_errors=True)
    return atlas


def _check_options(keep: tuple[str, ...], batch_size: int, engine: str) -> None:
    unknown = [what for what in keep if what not in KEEP]
    if unknown or not keep:
        asked = ", ".join(unknown) or "nothing"
        raise InputError(f"asked to keep {asked}; what can be kept is {', '.join(KEEP)}")
    if batch_size < 1:
        raise InputError(f"a batch of {batch_size} holds nothing; give a batch size from 1 up")
    if engine != "local":
        raise InputError(f"no engine is named {engine!r}; there is local")


class Run:
    """One capture on its way into one folder."""

    def __init__(self, loaded: Loaded, given: list[Input], options: Options, folder: Path):
        self.loaded, self.given, self.options, self.folder = loaded, given, options, folder
        self.fingerprint = fingerprint(loaded, given, options.__dict__)

    def is_done(self) -> bool:
        if not is_whole(self.folder):
            return False
        return m.Manifest.read(self.folder).options.get("fingerprint") == self.fingerprint

    def go(self, progress: bool, overwrite: bool) -> None:
        self._refuse_bad_inputs()
        plan = probe(self.loaded, self._probed(), self.options.seed)
        _refuse_nothing_exact(plan)
        about = {"model": self.loaded.name, "inputs": len(self.given)}
        writer = Writer(self.folder, self.fingerprint, about, overwrite)
        with bar("capturing", len(self.given), progress) as draw:
            draw(writer.inputs_done)
            for shard in self._shards(writer.inputs_done, plan):
                self._write_shard(shard, plan, writer)
                draw(writer.inputs_done)
        self._finish(plan, writer)

    def _encode(self, number: int) -> Encoded:
        try:
            return encode(self.loaded, self.given[number], truncate=self.options.truncate)
        except InputError as problem:
            if len(self.given) == 1:
                raise
            raise InputError(f"input {number}: {problem}") from problem

    def _refuse_bad_inputs(self) -> None:
        """Find an input that is too long before hours of work, where looking is cheap."""
        if getattr(self.loaded.model.config, "is_encoder_decoder", False):
            return
        for number, given in enumerate(self.given):
            if given.kind in ("text", "pair"):
                self._encode(number)

    def _probed(self) -> list[Encoded]:
        return [self._encode(number) for number in range(min(PROBED, len(self.given)))]

    # One shard -----------------------------------------------------------------------------------

    def _shards(self, start: int, plan: Plan) -> Iterator[list[tuple[int, Encoded]]]:
        """Consecutive inputs whose vectors come to about SHARD_BYTES."""
        shard: list[tuple[int, Encoded]] = []
        size = 0
        for number in range(start, len(self.given)):
            item = self._encode(number)
            shard.append((number, item))
            size += _bytes(item, plan) + 4 * self.options.generate
            if size >= self.options.shard_bytes:
                yield shard
                shard, size = [], 0
        if shard:
            yield shard

    def _write_shard(self, items: list[tuple[int, Encoded]], plan: Plan, writer: Writer) -> None:
        shard = Shard(self.options.keep)
        tokens: dict[int, dict[str, dict[str, Any]]] = {}
        prompts: dict[int, int] = {}
        for batch in _batches(items, 1 if plan.alone else self.options.batch_size):
            for part in self._runnable(batch):
                self._add(part, plan, shard, tokens, prompts)
        rows = []
        for number, item in items:
            images = self._save_images(number)
            text = item.streams.get("text")
            boundary = text.segment.index(1) if text and 1 in text.segment else -1
            rows.append(
                input_row(
                    number, self.given[number], boundary=boundary, prompt=prompts.get(number, -1),
                    truncated=item.truncated, images=images,
                )
            )  # fmt: skip
        streams = [(n, stream, columns) for n, _ in items for stream, columns in tokens[n].items()]
        known = set(input_row(0, Input("text"), boundary=0, prompt=0, truncated=False, images=[]))
        columns = [name for name in _columns(self.given) if name not in known]
        writer.add(
            shard.tensors(),
            input_table(rows, columns),
            token_table(writer.tokens_done, streams),
            {"run_error": shard.run_error, "fine": _fine(shard)},
        )

    def _runnable(self, batch: list[tuple[int, Encoded]]) -> Iterator[list[tuple[int, Encoded]]]:
        """The batch, or its inputs one by one where they cannot be padded together."""
        if len(batch) > 1 and not self.options.generate:
            try:
                collate([item for _, item in batch], self.loaded)
                yield batch
                return
            except ValueError:
                pass
        yield from ([one] for one in batch)

    def _add(
        self,
        batch: list[tuple[int, Encoded]],
        plan: Plan,
        shard: Shard,
        tokens: dict[int, dict[str, dict[str, Any]]],
        prompts: dict[int, int],
    ) -> None:
        """Run a batch and put what it did into the shard."""
        items = [item for _, item in batch]
        tensors, real = collate(items, self.loaded)
        calls, streams = self._observe(tensors, items, plan)
        if self.options.generate:
            real = {}
        exact = {(one.tower, one.layer) for one in plan.receipt.layers if one.exact}
        forms = Forms()
        made: dict[str, tuple[str, int]] = {}
        for layer in layers_of(calls):
            name = (plan.names[layer.group], layer.number)
            if name not in exact:
                continue
            ends = plan.ends[layer.group, layer.number]
            shard.calls.setdefault(name, _without_tensors(layer.first))
            self._spot(layer.steps, real.get(ends.queries), name, shard)
            if not self.options.generate:
                n, k = sizes(layer, len(items))
                made.setdefault(ends.queries, (layer.group[0], n))
                made.setdefault(ends.keys, (layer.group[0], k))
            for row, (number, _) in enumerate(batch):
                q, k_real = real_ends(ends, real, row)
                parts = pieces(layer, row, len(items), q, k_real, forms)
                shard.pieces[name][number] = parts
        for row, (number, _) in enumerate(batch):
            mine = {stream: token_columns(one) for stream, one in streams[row].items()}
            for stream, (path, n) in made.items():
                if stream not in mine:
                    mine[stream] = made_tokens(self.loaded.model, path, n, tensors)
            tokens[number] = mine
            if self.options.generate:
                side = "decoder" if "decoder" in mine else "text"
                prompts[number] = len(items[row].streams[side])
            _refuse_lost_tokens(number, mine, shard, plan)

    def _observe(
        self, tensors: dict[str, Tensor], items: list[Encoded], plan: Plan
    ) -> tuple[list[Call], list[dict[str, Tokens]]]:
        """The calls, and the tokens of each input's known streams."""
        model, seed = self.loaded.model, self.options.seed
        streams = [dict(item.streams) for item in items]
        if not self.options.generate:
            calls = observe(model, tensors, plan.way, fast=plan.fast, seed=seed)
            return calls, streams
        written: list[Tensor] = []

        def write(**given: Tensor) -> None:
            written.append(
                model.generate(
                    **given, max_new_tokens=self.options.generate, do_sample=False, num_beams=1
                )
            )

        side = "decoder" if "decoder" in streams[0] else "text"
        given = {k: v for k, v in tensors.items() if side == "text" or not k.startswith("decoder_")}
        calls = observe(model, given, plan.way, fast=plan.fast, seed=seed, run=write)
        # The last token was written but never read, so it has no query and is not in the atlas.
        ids = written[0][0, :-1].tolist()
        before = streams[0][side]
        if ids[: len(before)] == before.id:
            streams[0][side] = _extended(
                before, bare_tokens(ids[len(before) :], self.loaded.tokenizer)
            )
        else:
            streams[0][side] = bare_tokens(ids, self.loaded.tokenizer)
        return calls, streams

    def _spot(
        self,
        steps: tuple[tuple[Call, ...], ...],
        real: Tensor | None,
        name: tuple[str, int],
        shard: Shard,
    ) -> None:
        for calls in steps:
            for call in calls:
                if not call.query.shape[-1]:
                    continue
                rounding, error = spot_check(call, real)
                shard.rounding[name] = max(shard.rounding[name], rounding)
                shard.run_error = worst(shard.run_error, error)
                bound = 10 * BOUNDS.get(self.loaded.model.dtype, 1e-5)
                if not error <= bound:
                    raise ModelError(
                        f"layer {name[1]} of {name[0]} gave an output that its attention "
                        f"does not explain (off by {error:.1e}); the capture was stopped, "
                        "since its receipt would not be true"
                    )

    def _save_images(self, number: int) -> list[str]:
        """Pictures go into the atlas as they are, so that it can be shown anywhere."""
        names = []
        for index, image in enumerate(self.given[number].images):
            suffix = Path(image).suffix.lower() if isinstance(image, str | Path) else ".png"
            name = f"images/{number:06d}-{index}{suffix}"
            write_whole(self.folder / name, partial(_save_image, image))
            names.append(name)
        return names

    # The end -------------------------------------------------------------------------------------

    def _finish(self, plan: Plan, writer: Writer) -> None:
        facts = [part.facts for part in writer.parts]
        run_error = 0.0
        for one in facts:
            run_error = worst(run_error, float(one["run_error"]))
        model = self.loaded.model
        exact = {(one.tower, one.layer) for one in plan.receipt.layers if one.exact}
        streams: dict[str, None] = {}
        for group_number, ends in plan.ends.items():
            if (plan.names[group_number[0]], group_number[1]) in exact:
                streams |= {ends.queries: None, ends.keys: None}
        about: dict[str, Any] = {
            "model": self.loaded.name,
            "revision": self.loaded.revision,
            "model_class": type(model).__name__,
            "towers": _towers(plan, exact),
            "streams": tuple(streams),
            "keep": self.options.keep if plan.way != "outputs" else ("weights",),
            "options": {**self.options.__dict__, "fingerprint": self.fingerprint},
            "versions": {
                name: version(name)
                for name in ("attention-atlas", "torch", "transformers", "numpy")
            },
        }
        receipt = replace(plan.receipt, run_error=run_error)
        shards = tuple(part.shard for part in writer.parts)
        draft = m.Manifest(
            receipt=receipt, shards=shards, tables={}, inputs=writer.inputs_done,
            tokens=writer.tokens_done, **about,
        )  # fmt: skip
        receipt = _with_stored_errors(receipt, Atlas(self.folder, draft), plan, self.options)
        writer.finish(receipt=receipt, **about)


def _batches(items: list[tuple[int, Encoded]], size: int) -> Iterator[list[tuple[int, Encoded]]]:
    """Inputs of like length together, so that little is spent on padding."""

    def length(one: tuple[int, Encoded]) -> int:
        return sum(len(tokens) for tokens in one[1].streams.values())

    ordered = sorted(items, key=length)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _bytes(item: Encoded, plan: Plan) -> int:
    """About how much one input will take in a shard."""
    total = 0
    for layer in plan.layers:
        call, ends = layer.first, plan.ends[layer.group, layer.number]
        n, k = sizes(layer, len(call.query) if not plan.alone else 1)
        n = len(item.streams[ends.queries]) if ends.queries in item.streams else n
        k = len(item.streams[ends.keys]) if ends.keys in item.streams else k
        _, heads, _, width = call.query.shape
        groups, value_width = call.key.shape[1], call.value.shape[-1]
        total += 2 * (n * heads * width + k * groups * (width + value_width))
        if not width:
            total += 4 * heads * n * k
    return total


def _fine(shard: Shard) -> list[str]:
    return sorted(f"{t}.L{n}" for (t, n), e in shard.rounding.items() if e > ROUNDING_LIMIT)


def _columns(given: list[Input]) -> list[str]:
    found: dict[str, None] = {}
    for one in given:
        row = input_row(0, one, boundary=0, prompt=0, truncated=False, images=[])
        found |= dict.fromkeys(row)
    return list(found)


def _without_tensors(call: Call) -> Call:
    """A layer's constants, without holding its batch in memory."""
    return replace(call, weights=None, output=None, mask=None, bias=None,
                   query=call.query[:0], key=call.key[:0], value=call.value[:0])  # fmt: skip


def _extended(first: Tokens, rest: Tokens) -> Tokens:
    return Tokens(*(getattr(first, f.name) + getattr(rest, f.name) for f in fields(Tokens)))


def _save_image(image: Any, target: Path) -> None:
    if isinstance(image, str | Path):
        shutil.copyfile(image, target)
    else:
        open_image(image).save(target, "PNG")


def _refuse_nothing_exact(plan: Plan) -> None:
    if not any(one.exact for one in plan.receipt.layers):
        raise ModelError(
            f"no layer of this model could be captured exactly; the first one: "
            f"{plan.receipt.layers[0].reason}"
        )


def _refuse_lost_tokens(
    number: int, mine: dict[str, dict[str, Any]], shard: Shard, plan: Plan
) -> None:
    """Every query and key must be a token of the atlas, or something was lost on the way."""
    by_name = {(plan.names[g], n): ends for (g, n), ends in plan.ends.items()}
    for name, by_input in shard.pieces.items():
        if number not in by_input:
            continue
        ends = by_name[name]
        for stream, count in (
            (ends.queries, sum(p.query.shape[1] for p in by_input[number])),
            (ends.keys, sum(p.key.shape[1] for p in by_input[number])),
        ):
            if len(mine[stream]["text"]) != count:
                raise AtlasError(
                    f"layer {name[1]} of {name[0]} has {count} places for the "
                    f"{len(mine[stream]['text'])} tokens of {stream} in input {number}; "
                    "this model pads or pools in a way that cannot be shown yet"
                )


def _towers(plan: Plan, exact: set[tuple[str, int]]) -> tuple[m.Tower, ...]:
    towers: dict[str, list[m.Layer]] = {}
    depths: dict[str, int] = {}
    for layer in plan.layers:
        name = plan.names[layer.group]
        towers.setdefault(name, [])
        depths[name] = max(depths.get(name, 0), layer.depth)
        if (name, layer.number) not in exact:
            continue
        call, ends = layer.first, plan.ends[layer.group, layer.number]
        towers[name].append(
            m.Layer(
                layer=layer.number,
                heads=call.query.shape[1],
                groups=call.key.shape[1],
                width=call.query.shape[3],
                value_width=call.value.shape[3],
                scale=call.scale,
                softcap=call.softcap,
                sink=call.sink is not None,
                queries=ends.queries,
                keys=ends.keys,
                module=call.module,
            )
        )
    roles = {
        plan.names[group]: "cross" if group[1] else "causal" if group in plan.causal else "self"
        for group in plan.names
    }
    return tuple(
        m.Tower(name, roles[name], depths[name], tuple(sorted(layers, key=lambda x: x.layer)))
        for name, layers in towers.items()
        if layers
    )


def _with_stored_errors(
    receipt: m.Receipt, atlas: Atlas, plan: Plan, options: Options
) -> m.Receipt:
    """The receipt once more, from the folder as it lies on disk."""
    if options.generate or not ({"query", "key"} <= set(options.keep) or "weights" in options.keep):
        return receipt
    layers = []
    for one in receipt.layers:
        if one.exact:
            error = 0.0
            for number, own in enumerate(plan.own):
                stored = atlas.layer_weights(number, one.layer, one.tower)
                difference = np.abs(stored.astype(np.float64) - own[one.tower, one.layer])
                error = worst(error, float(difference.max()) if difference.size else 0.0)
            one = replace(one, stored_error=error)
        layers.append(one)
    return replace(receipt, layers=tuple(layers))
