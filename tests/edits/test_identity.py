"""Does an edit that changes nothing change no bit, and does the receipt hold, in every model?"""

import pytest
import torch

from attention_atlas.edits.prove.receipt import EditReceipt, edit_receipt
from attention_atlas.models.load import Loaded
from tests.record.test_zoo import HOW, NOT_EXACT, some
from tests.record.zoo import ZOO

pytestmark = pytest.mark.filterwarnings("ignore")  # what the models themselves warn of

OUTPUT = {"ablate", "scale", "patch (output)"}  # the edits of what heads move
OTHER = {
    "mask", "pattern", "neuron (query)", "neuron (key)", "neuron (value)", "patch (pattern)",
    "patch (query)", "patch (key)", "patch (value)",
}  # fmt: skip
# Models that run an input in windows or stages: no edit there that addresses tokens.
PARTS = {"Swin", "Swin v2", "Donut", "Hiera", "TimeSformer"}
# What heads move meets no linear module: a norm or a quantised layer follows, or no module at all.
NOT_LINEAR = {"I-BERT", "XLNet", "WavLM", "DiffLlama", "BitNet"}


def receipt_of(name: str) -> EditReceipt:
    items = ZOO[name].feed(torch.Generator().manual_seed(1))
    return edit_receipt(Loaded(ZOO[name].build(), None, name, None), items)


@pytest.mark.full
@pytest.mark.parametrize("name", some(name for name in ZOO if name not in NOT_EXACT))
def test_no_ops_change_no_bit_and_all_that_can_be_shown_holds(name: str) -> None:
    receipt = receipt_of(name)
    failed = [check for check in receipt.checks if not check.holds and not check.refused]
    assert not failed
    made = {check.name.removeprefix("no-op of ") for check in receipt.checks if check.holds}
    expected = OUTPUT if HOW.get(name) == "trace" else OUTPUT | OTHER
    if name not in PARTS:
        assert expected <= made
    shown = {"contributions add up to the layer", "all heads ablated: as attention zeroed"}
    assert (shown <= made) == (name not in NOT_LINEAR)
    if HOW.get(name) != "trace":
        assert "an ablated head has no say" in made
