"""Write tokenizers of the library tokenizers with texts and their tokens, as cases of the tests.

    python make.py FOLDER [TEXT [VOCABULARY [STRINGS]]]

A case is NAME.json: the tokenizer.json and pairs of text and tokens. Without a file of text the
training text is a few sentences.
"""

import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
SENTENCES = """She'll say: we've 12345 reasons, and I'M not sure they'd count!
    Indented\t\ttabs  and   spaces;  blank lines:\n\n\n\r\nÜber naïve façades, 東京で１２３, привет мир… ½ Ⅷ ٣٤٥
"""


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def level(regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


CASES = {  # pre-tokenizer, normalizer, tokens that are no special ones
    "gpt2": (level(True), None, []),
    "llama3": (sequence(split(LLAMA3), level(False)), None, []),
    "qwen2": (sequence(split(QWEN2), level(False)), normalizers.NFC(), []),
    "smollm": (sequence(pre_tokenizers.Digits(individual_digits=True), level(True)), None, []),
    "falcon": (sequence(pre_tokenizers.Digits(individual_digits=False), level(True)), normalizers.Sequence([normalizers.NFC()]), []),
    "removed": (sequence(split(LLAMA3, "removed", True), level(False)), None, []),
    "deepseek": (sequence(*[split(p) for p in DEEPSEEK], level(False)), None, []),
    "spaces": (level(True), None, [" " * n for n in range(31, 1, -1)] + ["<tool>"]),
}


def texts(corpus, strings, seed=7):
    draw = random.Random(seed)
    yield from ["", " ", "\n", corpus[:2000], "a<|endoftext|>b", "<tool>x <tool>" + 40 * " " + "y", 300 * "ab", "e\u0301\u1e9b\u0323"]
    planes = [(32, 127), (0, 0x250), (0x370, 0x600), (0x900, 0xE00), (0x2000, 0x2C00), (0x3000, 0xA000), (0x1F300, 0x1F700), (0, 0x30000)]
    for _ in range(strings):
        low, high = draw.choice(planes)
        chars = []
        for _ in range(draw.randrange(1, 40)):
            c = draw.randrange(low, high) if draw.random() < 0.7 else ord(draw.choice(" \n\t\r'0129abstrevld\u00a0\u3000\u0301\u017f"))
            chars.append(chr(c) if not 0xD800 <= c < 0xE000 else " ")
        yield "".join(chars)


def known(text):
    return all(unicodedata.ucd_3_2_0.category(c) != "Cn" for c in text)


def main(folder, path=None, vocabulary=330, strings=40):
    corpus = pathlib.Path(path).read_text() if path else 3 * SENTENCES
    for name, (pre, normal, added) in CASES.items():
        t = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
        t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
        if normal is not None:
            t.normalizer = normal
        t.train_from_iterator(
            [corpus, SENTENCES],
            trainers.BpeTrainer(
                vocab_size=int(vocabulary),
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                special_tokens=["<|endoftext|>"],
                show_progress=False,
            ),
        )
        t.add_tokens([AddedToken(a, normalized=False) for a in added])
        t.encode_special_tokens = True
        # forms of Unicode depend on its version, which the library and Go have of their own
        old = [text for text in texts(corpus, int(strings)) if normal is None or known(text)]
        found = [[text, t.encode(text, add_special_tokens=False).ids] for text in old]
        if path:
            found.append([corpus, t.encode(corpus, add_special_tokens=False).ids])
        case = {"tokenizer": json.loads(t.to_str()), "texts": found}
        (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(case, separators=(",", ":")))


main(*sys.argv[1:])
