"""Does a model whose checkpoint lacks some tensors come out the same each time it is loaded?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

import attention_atlas as aa
from attention_atlas.models.load import load
from attention_atlas.models.locate import BUILTIN
from attention_atlas.record.write.fingerprint import fingerprint

TEXTS = [f"Text {number} is here and it says {number * 7}." for number in range(24)]


@pytest.fixture
def without_pooler(tmp_path: Path) -> Path:
    """A BERT saved without its pooler, as sentence encoders often are."""
    folder = tmp_path / "encoder"
    tokenizer = AutoTokenizer.from_pretrained(BUILTIN / "bert")
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip
    model = BertModel(config)
    kept = {k: v for k, v in model.state_dict().items() if not k.startswith("pooler")}
    model.save_pretrained(folder, state_dict=kept)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.full
def test_a_killed_capture_of_it_resumes_and_a_whole_one_opens(
    without_pooler: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "x.atlas"
    code = (
        "import attention_atlas as aa\n"
        f"aa.capture({str(without_pooler)!r}, {TEXTS!r}, path={str(folder)!r}, shard_bytes=1,"
        " progress=False)"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    while process.poll() is None and not (folder / "parts" / "00001.json").exists():
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / "atlas.json").exists()
    first = (folder / "vectors" / "00000.safetensors").stat().st_mtime_ns
    for _ in ("resumed", "opened"):
        assert len(
            aa.capture(without_pooler, TEXTS, path=folder, shard_bytes=1, progress=False)
        ) == len(TEXTS)
    assert (folder / "vectors" / "00000.safetensors").stat().st_mtime_ns == first


def test_missing_tensors_are_known_the_same_each_time_and_no_part_of_the_fingerprint(
    without_pooler: Path,
) -> None:
    torch.manual_seed(1)
    first = load(without_pooler, device="cpu")
    torch.manual_seed(2)
    before = torch.get_rng_state()
    second = load(without_pooler, device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    assert first.missing == {"pooler.dense.weight", "pooler.dense.bias"}
    assert torch.equal(first.model.pooler.dense.weight, second.model.pooler.dense.weight)
    same = fingerprint(first, [], {})
    with torch.no_grad():
        second.model.pooler.dense.weight += 1
    assert fingerprint(second, [], {}) == same
    with torch.no_grad():
        second.model.encoder.layer[0].attention.self.key.weight += 1
    assert fingerprint(second, [], {}) != same


def test_loading_says_in_one_sentence_what_is_missing(
    without_pooler: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()  # what saving it said
    load(without_pooler, device="cpu")
    (said,) = capfd.readouterr().err.splitlines()
    assert "encoder" in said and "pooler.dense" in said and "random" in said


@pytest.mark.full
def test_loading_is_silent_about_tensors_that_the_model_does_not_use(tmp_path: Path) -> None:
    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=9)
    model = BertModel(config)
    more = {**model.state_dict(), "cls.predictions.decoder.weight": torch.ones(4)}
    model.save_pretrained(tmp_path, state_dict=more)
    code = f"from attention_atlas.models.load import load; load({str(tmp_path)!r}, device='cpu')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
