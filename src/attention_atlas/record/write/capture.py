"""Model + inputs → atlas folder.

    load ─ read ─ trial (the receipt) ─┬─ batch ─ observe ─ spot-check ─┐
                                       │        … until a shard is full ├─ write ─ … ─ manifest
                                       └────────────────────────────────┘
Memory holds one shard at a time. A shard is a fixed run of inputs with its own batches, so a
capture that was killed and resumed writes the very same bytes.
"""

import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor

from attention_atlas.models.encode import Encoded, Tokens, collate, encode
from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.models.media import can_open, open_image
from attention_atlas.models.tokens import bare_tokens
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.names.progress import bar
from attention_atlas.record.places.picture_columns import add_pictures
from attention_atlas.record.places.streams import (
    Ends,
    made_tokens,
    real_ends,
    refuse_hidden_pads,
    sizes,
    token_columns,
)
from attention_atlas.record.places.survey import Survey
from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.receipt import Trial, try_ways
from attention_atlas.record.prove.spot_check import Lighten, spot_check
from attention_atlas.record.watch.call import Call, Sample
from attention_atlas.record.watch.layers import LayerCalls, layers_of
from attention_atlas.record.watch.pieces import CannotSplit, Forms, Places, pieces
from attention_atlas.record.watch.ways import Watch, watching
from attention_atlas.record.write.batches import Numbered, batches, bytes_of, refuse_lost_tokens
from attention_atlas.record.write.fingerprint import fingerprint
from attention_atlas.record.write.shard_tensors import Shard
from attention_atlas.record.write.tables import input_row, input_table, token_table
from attention_atlas.record.write.towers import towers, with_stored_errors
from attention_atlas.record.write.weight_correlation import weight_correlations
from attention_atlas.store import manifest as m
from attention_atlas.store.files import write_whole
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.write import Writer, is_whole

KEEP = ("query", "key", "value", "weights")
NEAR = 8  # how far to look for a second input of another length to make the receipt on
REMEMBERED = 1_000  # encoded texts held in memory at most
SHARD_BYTES = 128 * 2**20
# Places of padding that take as long as one batch more, in which a CPU reads all weights again and
# a GPU waits for its kernels: 30 was measured with 85 million parameters on two cores.
WORTH = {"cpu": 30, "gpu": 10_000}
# fp16 keeps weights within 1e-3 of the model's; sampled rows must do better than that by half.
ROUNDING_LIMIT = 5e-4


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
    revision: str | None = None,
    trust_remote_code: bool = False,
    gguf_file: str | None = None,
    overwrite: bool = False,
    shard_bytes: int = SHARD_BYTES,
) -> StoredAtlas:
    """Run a model over inputs and store its attention; returns the atlas for reading.

    Without `path` the atlas lives in a temporary folder for as long as the object does. A folder
    that a killed capture left behind is gone on with; one that is whole and equal is just opened.

    generate   let the model write that many tokens after each input and capture them as they come
    truncate   cut inputs that are too long for the model instead of refusing them
    """
    _check_options(keep, batch_size, engine)
    loaded = load(
        model, tokenizer, device=device, dtype=dtype, revision=revision,
        trust_remote_code=trust_remote_code, gguf_file=gguf_file,
    )  # fmt: skip
    given, skipped = _readable(
        read_inputs(inputs, column=column, second_column=second_column, limit=limit, seed=seed)
    )
    options = Options(tuple(keep), batch_size, truncate, generate, limit, seed, shard_bytes)
    folder = Path(tempfile.mkdtemp(prefix="attention-atlas-") if path is None else path)
    run = Run(loaded, given, options, folder, skipped)
    if overwrite or not run.is_done():
        run.go(progress, overwrite)
    atlas = StoredAtlas.open(folder)
    if path is None:
        weakref.finalize(atlas, shutil.rmtree, folder, ignore_errors=True)
    return atlas


def _readable(given: list[Input]) -> tuple[list[Input], list[str]]:
    """Without the pictures of a folder that cannot be opened, and their names, which are told."""
    broken = [
        one for one in given if one.may_skip and not all(can_open(image) for image in one.images)
    ]
    if not broken:
        return given, []
    names = [str(one.source) for one in broken]
    if len(broken) == len(given):
        raise InputError(
            f"none of the {len(given)} pictures can be opened, {names[0]} to begin with; "
            "give a folder with some that can"
        )
    many = f"{len(names)} of {len(given)} pictures"
    print(f"left out {many}, which cannot be opened: {', '.join(names)}", file=sys.stderr)
    gone = {id(one) for one in broken}
    return [one for one in given if id(one) not in gone], names


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

    def __init__(
        self, loaded: Loaded, given: list[Input], options: Options, folder: Path,
        skipped: list[str],
    ):  # fmt: skip
        self.loaded, self.given, self.options, self.folder = loaded, given, options, folder
        self.skipped = skipped
        self.fingerprint = fingerprint(loaded, given, options.__dict__)
        self.bound = 0.0
        self.probed: list[int] = []
        self.look: Watch = lambda tensors, run=None: []  # until the run opens its eyes
        # Whoever asks for weights wants them as exact as can be, so then nothing is rounded.
        self.light = Lighten(everything="weights" in options.keep)
        self.survey = Survey(loaded, self.look)
        self.alike: dict[str, list[float]] = {}
        self._encoded: dict[int, Encoded] = {}

    def is_done(self) -> bool:
        if not is_whole(self.folder):
            return False
        return m.Manifest.read(self.folder).options.get("fingerprint") == self.fingerprint

    def go(self, progress: bool, overwrite: bool) -> None:
        self._refuse_bad_inputs()
        self.probed = self._to_probe()
        items = [self._encode(number) for number in self.probed]
        plan = try_ways(self.loaded, items, self.options.seed)
        _refuse_nothing_exact(plan)
        self.bound = plan.receipt.bound
        about = {"model": self.loaded.name, "inputs": len(self.given)}
        writer = Writer(self.folder, self.fingerprint, about, overwrite)
        if writer.parts:
            self.light.fine = set(writer.parts[-1].facts["fine"])
        self.look = watching(
            self.loaded.model, plan.way, fast=plan.fast, light=self.light, seed=self.options.seed
        )
        with bar("capturing", len(self.given), progress) as draw, ThreadPoolExecutor(1) as aside:
            self.survey = Survey(self.loaded, self.look)
            self.alike = weight_correlations(plan)
            draw(writer.inputs_done)
            last: Future[None] | None = None
            for shard in self._shards(writer.inputs_done, plan):
                write = self._run_shard(shard, plan, writer)
                if last is not None:
                    last.result()
                    draw(writer.inputs_done)
                last = aside.submit(write)  # the disk works while the model runs on
                del write  # it holds the whole shard, which is gone once written
            if last is not None:
                last.result()
        self._finish(plan, writer)

    def _encode(self, number: int) -> Encoded:
        """One input as tensors; those of a small corpus are kept, since we come by twice."""
        known = self._encoded.get(number)
        if known is not None:
            return known
        try:
            item = encode(self.loaded, self.given[number], truncate=self.options.truncate)
        except InputError as problem:
            if len(self.given) == 1:
                raise
            raise InputError(f"input {number}: {problem}") from problem
        if self.given[number].kind in ("text", "pair") and len(self._encoded) < REMEMBERED:
            self._encoded[number] = item
        return item

    def _refuse_bad_inputs(self) -> None:
        """Find an input that is too long before hours of work, where looking is cheap."""
        if getattr(self.loaded.model.config, "is_encoder_decoder", False):
            return
        for number, given in enumerate(self.given):
            if given.kind in ("text", "pair"):
                self._encode(number)

    def _to_probe(self) -> list[int]:
        """Two short inputs from the beginning, of unequal length if there are: to try padding."""
        lengths = {n: _length(self._encode(n)) for n in range(min(NEAR, len(self.given)))}
        first, *others = sorted(lengths, key=lambda n: lengths[n])
        unequal = [n for n in others if lengths[n] != lengths[first]]
        return [first, *(unequal or others)[:1]]

    # One shard -----------------------------------------------------------------------------------

    def _shards(self, start: int, plan: Trial) -> Iterator[list[Numbered]]:
        """Consecutive inputs whose vectors come to about `shard_bytes`."""
        shard: list[Numbered] = []
        size = 0
        for number in range(start, len(self.given)):
            item = self._encode(number)
            shard.append((number, item))
            size += bytes_of(item, plan) + 4 * self.options.generate
            if size >= self.options.shard_bytes:
                yield shard
                shard, size = [], 0
        if shard:
            yield shard

    def _run_shard(self, items: list[Numbered], plan: Trial, writer: Writer) -> Callable[[], None]:
        """Run the model over a shard's inputs; gives the function that writes it down."""
        shard = Shard(self.options.keep)
        tokens: dict[int, dict[str, dict[str, Any]]] = {}
        prompts: dict[int, int] = {}
        size = 1 if plan.alone else self.options.batch_size
        worth = WORTH["cpu" if self.loaded.model.device.type == "cpu" else "gpu"]
        for batch in batches(items, size, worth):
            for part in [batch] if not self.options.generate else [[one] for one in batch]:
                try:
                    self._add(part, plan, shard, tokens, prompts)
                except CannotSplit:  # nothing told so before this batch
                    for one in part:
                        self._add([one], plan, shard, tokens, prompts)
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
        tensors, inputs = shard.tensors(), input_table(rows, columns)
        facts = {"run_error": shard.run_error, "fine": sorted(self.light.fine)}
        return lambda: writer.add(tensors, inputs, token_table(writer.tokens_done, streams), facts)

    def _add(
        self,
        batch: list[Numbered],
        plan: Trial,
        shard: Shard,
        tokens: dict[int, dict[str, dict[str, Any]]],
        prompts: dict[int, int],
    ) -> None:
        """Run a batch and put what it did into the shard."""
        items = [item for _, item in batch]
        try:
            tensors, real = collate(items, self.loaded)
        except ValueError as problem:  # they cannot be padded together
            if len(items) == 1:
                raise
            raise CannotSplit from problem
        calls, streams = self._observe(tensors, items, plan)
        if self.options.generate:
            real = {}
        layers = layers_of(calls)
        if len(items) > 1:
            refuse_hidden_pads(self.loaded.model, layers, plan.ends, real)
        exact = {(one.tower, one.layer) for one in plan.receipt.layers if one.exact}
        layers = [one for one in layers if (plan.names[one.tower_key], one.number) in exact]
        coarse = self._spot(layers, plan, real, shard)
        if coarse:  # once more, with these left as they are
            self.light.fine |= coarse
            self._add(batch, plan, shard, tokens, prompts)
            return
        forms = Forms()
        ends_real: dict[tuple[Ends, int], tuple[Places, Places]] = {}
        made: dict[str, tuple[str, str, int, bool]] = {}
        begun: set[str] = set()
        for layer in layers:
            name = (plan.names[layer.tower_key], layer.number)
            ends = plan.ends[layer.tower_key, layer.number]
            shard.calls.setdefault(name, _without_tensors(layer.first))
            n, k = sizes(layer, len(items))
            path, cross = layer.tower_key
            first = path not in begun and not cross
            made.setdefault(ends.queries, (path, layer.first.module, n, first))
            made.setdefault(ends.keys, (path, layer.first.module, k, first))
            begun.add(path)
            for row, (number, _) in enumerate(batch):
                if (ends, row) not in ends_real:
                    ends_real[ends, row] = real_ends(ends, real, row)
                parts = pieces(layer, row, len(items), *ends_real[ends, row], forms)
                shard.pieces[name][number] = parts
        for row, (number, _) in enumerate(batch):
            mine = {stream: token_columns(one) for stream, one in streams[row].items()}
            for stream, (path, module, n, first) in made.items():
                if stream not in mine:
                    seats = self.survey.seats(path, module, n, first, items[row])
                    mine[stream] = made_tokens(n, seats)
            add_pictures(self.loaded.model, mine, items[row], self.given[number])
            tokens[number] = mine
            if self.options.generate:
                side = "decoder" if "decoder" in mine else "text"
                prompts[number] = len(items[row].streams[side])
            refuse_lost_tokens(number, mine, shard, plan)

    def _observe(
        self, tensors: dict[str, Tensor], items: list[Encoded], plan: Trial
    ) -> tuple[list[Call], list[dict[str, Tokens]]]:
        """The calls, and the tokens of each input's known streams."""
        model = self.loaded.model
        streams = [dict(item.streams) for item in items]
        if not self.options.generate:
            return self.look(tensors), streams
        written: list[Tensor] = []

        def write(**given: Tensor) -> None:
            written.append(
                model.generate(
                    **given, max_new_tokens=self.options.generate, do_sample=False, num_beams=1
                )
            )

        side = "decoder" if "decoder" in streams[0] else "text"
        given = {k: v for k, v in tensors.items() if side == "text" or not k.startswith("decoder_")}
        calls = self.look(given, write)
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
        self, layers: list[LayerCalls], plan: Trial, real: dict[str, Tensor], shard: Shard
    ) -> set[str]:
        """Check this batch by its samples; gives the modules that fp16 is too coarse for."""
        coarse: set[str] = set()
        by_ends: dict[Ends, list[tuple[LayerCalls, str, Sample]]] = {}
        for layer in layers:
            mine = by_ends.setdefault(plan.ends[layer.tower_key, layer.number], [])
            for call in (call for calls in layer.steps for call in calls):
                mine += [(layer, call.module, sample) for sample in call.samples]
        for ends, mine in by_ends.items():
            samples = [sample for _, _, sample in mine]
            errors = spot_check(samples, real.get(ends.queries), real.get(ends.keys))
            for (layer, module, _), error in zip(mine, errors, strict=True):
                shard.run_error = worst(shard.run_error, error.output)
                if not error.output <= max(1e-4, 8 * self.bound):
                    raise ModelError(
                        f"layer {layer.number} of {plan.names[layer.tower_key]} gave an output "
                        f"that its attention does not explain (off by {error.output:.1e}); the "
                        "capture was stopped, since its receipt would not be true"
                    )
                if error.rounding > ROUNDING_LIMIT:
                    coarse.add(module)
        return set() if self.light.everything else coarse - self.light.fine

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

    def _finish(self, plan: Trial, writer: Writer) -> None:
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
            "towers": towers(plan, exact),
            "streams": tuple(streams),
            "keep": self.options.keep if plan.way != "outputs" else ("weights",),
            "options": {
                **self.options.__dict__,
                "fingerprint": self.fingerprint,
                **({"skipped": self.skipped} if self.skipped else {}),
                "weight_correlation": self.alike,
            },
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
        can_read = {"query", "key"} <= set(about["keep"]) or "weights" in about["keep"]
        if can_read and not self.options.generate:
            stored = StoredAtlas(self.folder, draft, just_written=True)
            receipt = with_stored_errors(receipt, stored, plan, self.probed)
        writer.finish(receipt=receipt, **about)


def _refuse_nothing_exact(plan: Trial) -> None:
    if not any(one.exact for one in plan.receipt.layers):
        raise ModelError(
            f"no layer of this model could be captured exactly; the first one: "
            f"{plan.receipt.layers[0].reason}"
        )


def _columns(given: list[Input]) -> list[str]:
    found: dict[str, None] = {}
    for one in given:
        row = input_row(0, one, boundary=0, prompt=0, truncated=False, images=[])
        found |= dict.fromkeys(row)
    return list(found)


def _without_tensors(call: Call) -> Call:
    """A layer's constants, without holding its batch in memory."""
    return replace(call, weights=None, output=None, mask=None, bias=None, samples=(),
                   query=call.query[:0], key=call.key[:0], value=call.value[:0])  # fmt: skip


def _extended(first: Tokens, rest: Tokens) -> Tokens:
    return Tokens(*(getattr(first, f.name) + getattr(rest, f.name) for f in fields(Tokens)))


def _save_image(image: Any, target: Path) -> None:
    if isinstance(image, str | Path):
        shutil.copyfile(image, target)
    else:
        open_image(image).save(target, "PNG")


def _length(item: Encoded) -> list[int]:
    return [len(tokens) for tokens in item.streams.values()]
