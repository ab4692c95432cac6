"""From the file of books to tokenizers and token streams.

    python -m training.prepare BOOKS WORK

writes WORK/gpt and WORK/bert, each with the tokenizer files, train.npz and held_out.npz.
Both tokenizers learn from the training part only.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from training.text import Stream, sentences, split

VOCABULARY = 4096
POSITIONS = 256
END = "<|endoftext|>"


def byte_level(texts: list[str]) -> Tokenizer:
    """GPT-2's kind of tokenizer; it puts `<|endoftext|>` first, as every training row has it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(curly, plain) for curly, plain in zip("“”‘’", "\"\"''", strict=True)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", pair=f"{END} $A $B", special_tokens=[(END, 0)]
    )
    return tokenizer


def word_pieces(texts: list[str]) -> Tokenizer:
    """BERT's kind of tokenizer, lower-cased, with `[CLS] A [SEP] B [SEP]`."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=special, limit_alphabet=120, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


GPT_SETTINGS = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_max_length": POSITIONS,
    "bos_token": END,
    "eos_token": END,
    "pad_token": END,
    "clean_up_tokenization_spaces": False,
}
BERT_SETTINGS = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_max_length": POSITIONS,
    "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "clean_up_tokenization_spaces": False,
}


def save_tokenizer(tokenizer: Tokenizer, settings: dict[str, object], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def ids_without_specials(tokenizer: Tokenizer) -> Callable[[list[str]], list[list[int]]]:
    def ids_of(texts: list[str]) -> list[list[int]]:
        return [e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    return ids_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("books", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    train, held_out = split(given.books, given.seed)
    parts = {"train": train, "held_out": held_out}

    gpt = byte_level(train)
    save_tokenizer(gpt, GPT_SETTINGS, given.work / "gpt")
    bert = word_pieces(train)
    save_tokenizer(bert, BERT_SETTINGS, given.work / "bert")
    for name, texts in parts.items():
        lines = [text + "\n" for text in texts]
        whole = [s for text in texts for s in sentences(text)]
        for folder, tokenizer, pieces in (("gpt", gpt, lines), ("bert", bert, whole)):
            stream = Stream.encode(pieces, ids_without_specials(tokenizer))
            stream.save(given.work / folder / f"{name}.npz")
            print(f"{folder} {name}: {len(stream.tokens):,} tokens, {len(stream.starts):,} pieces")


if __name__ == "__main__":
    main()
