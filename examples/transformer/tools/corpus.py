#!/usr/bin/env python3
"""The text that the tiny model is trained on: collects it, trains its tokenizer, and writes the ids of its tokens.

    python3 corpus.py [--root ROOT] [--tokenizer FILE] [--out FOLDER]
    python3 corpus.py --decode SAMPLES.json

Needs the packages `tokenizers` and `numpy`. The text is the repository's own prose and .tk code, and nothing else: the
files of `SOURCES`, pattern after pattern, by path within a pattern. One file is one document.

Owns which files are the corpus, and which of them are held out. May assume a checkout. Guarantees that the same files
give the same tokenizer and the same ids. The files change, and the tokenizer with them: it is the trained model's only
together with the ids of the same run, so that to run this anew means to train anew. Writes

    tokenizer.json           byte-level BPE as GPT-2 has it, with 2048 tokens, `<|endoftext|>` the first of them
    build/train.npy          uint16: the documents one after the other, `<|endoftext|>` before each
    build/validation.npy     the same of the documents held out
    build/corpus.json        the documents of both, and their sizes in bytes and tokens

With --decode it prints as text the samples that train.py wrote.
"""

import argparse
import json
import pathlib

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent.parent

SOURCES = [
    "README.md",
    "CHANGELOG.md",
    "docs/*.md",
    "spec/*.md",
    "spec/errors/*.md",
    "stdlib/**/*.tk",
    "examples/*.tk",
]

END_OF_TEXT = "<|endoftext|>"

# Small enough that the embedding is an eighth of the model, large enough that common words of the text are one token.
VOCABULARY = 2048

# Every 16th document is held out, beginning with the 15th, which spreads them over all the sources. Documents differ in
# length: this choice held out 5.0% of the bytes when it was made, as new documents will change; corpus.json tells.
HELD_OUT = (16, 14)


def parse():
    parser = argparse.ArgumentParser(description="Collects the training text, trains its tokenizer, writes the ids.")
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent.parent, help="the checkout")
    parser.add_argument("--tokenizer", type=pathlib.Path, default=HERE / "tiny" / "tokenizer.json")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "build", help="where the ids go")
    parser.add_argument("--decode", type=pathlib.Path, metavar="SAMPLES", help="print these samples as text instead")
    return parser.parse_args()


def documents(root):
    """The path and text of each document, in the order of the corpus."""
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern), key=lambda p: p.relative_to(root).as_posix()):
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def train(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT],
        # All 256 bytes are tokens, whether the text has them or not, so that any prompt can be encoded.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    assert tokenizer.get_vocab_size() == VOCABULARY and tokenizer.token_to_id(END_OF_TEXT) == 0
    return tokenizer


def build(root, tokenizer_path, out):
    corpus = list(documents(root))
    for path, text in corpus:
        # Such a text would end its document in the middle.
        assert END_OF_TEXT not in text, path
    every, first = HELD_OUT
    # The tokenizer sees the training text alone, for the validation loss to be of unseen text.
    tokenizer = train([text for i, (_, text) in enumerate(corpus) if i % every != first])
    ids, about = {"train": [], "validation": []}, {"train": [], "validation": []}
    for i, (path, text) in enumerate(corpus):
        part = "validation" if i % every == first else "train"
        encoded = tokenizer.encode(text).ids
        assert tokenizer.decode(encoded) == text, path
        ids[part] += [tokenizer.token_to_id(END_OF_TEXT), *encoded]
        about[part].append({"path": path, "bytes": len(text.encode()), "tokens": len(encoded) + 1})
    tokenizer_path.parent.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(tokenizer_path))
    for part, values in ids.items():
        np.save(out / f"{part}.npy", np.array(values, dtype=np.uint16))
    (out / "corpus.json").write_text(json.dumps(about, indent=1) + "\n")
    for part, rows in about.items():
        total = {key: sum(row[key] for row in rows) for key in ("bytes", "tokens")}
        print(f"{part}: {len(rows)} documents, {total['bytes']} bytes, {total['tokens']} tokens")


def decode(tokenizer_path, samples):
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    for sample in json.loads(samples.read_text()):
        print(f"---- {sample['model']}, after a prompt of {sample['prompt']} tokens")
        print(tokenizer.decode(sample["ids"], skip_special_tokens=False))


def main():
    args = parse()
    if args.decode:
        decode(args.tokenizer, args.decode)
    else:
        build(args.root.resolve(), args.tokenizer, args.out)


if __name__ == "__main__":
    main()
