"""attention-atlas capture: run a model over inputs and store its attention."""

from attention_atlas.cli.arguments import Inputs, Model, Output, Overwrite
from attention_atlas.cli.talk import resumable, say, summary
from attention_atlas.engine.options import EngineOptions
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords
from attention_atlas.record.write.options import Capturing, Reading


def capture(
    model: Model,
    inputs: Inputs,
    output: Output,
    reading: Reading,
    capturing: Capturing,
    loading: Loading,
    running: EngineOptions,
    overwrite: Overwrite = False,
) -> None:
    """Run MODEL over INPUTS and store its attention in an atlas folder. Resumes if interrupted."""
    from attention_atlas.engine.engines import find_engine
    from attention_atlas.studies.capture import capture as run

    with resumable(output):
        atlas = run(
            model, inputs, path=output, overwrite=overwrite, engine=find_engine(running),
            **keywords(reading), **keywords(capturing), **keywords(loading),
        )  # fmt: skip
    say(summary(atlas))
    say(atlas.receipt.rows_line)
    say(atlas.output.line)
    print(output)
