"""The tokenizers: e5's, made of the pieces that its weights come with, and MiniLM's with a longer limit.

e5's is XLM-RoBERTa's SentencePiece unigram model, whose normalisation `nmt_nfkc` is NFKC after the clean-up of control
characters and blanks, but for one character: the full-width tilde stays as it is.
"""

from __future__ import annotations

import json

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from moderation_heavy.weights import E5

E5_TOKENS, MINILM_TOKENS = 512, 256
"""What each encoder was made for; what follows is not looked at."""
TILDE, STAND_IN = "\uff5e", "\uf8ff"


def e5(weights: E5) -> bytes:
    """Return tokenizer.json: ids with `<s>` before and `</s>` after, cut at E5_TOKENS."""
    tokenizer = Tokenizer(models.Unigram(list(weights.pieces), unk_id=weights.unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.Replace(TILDE, STAND_IN),
            normalizers.NFKC(),
            normalizers.Replace(STAND_IN, TILDE),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.enable_truncation(E5_TOKENS)
    text: str = tokenizer.to_str()
    return text.encode()


def minilm(content: bytes) -> bytes:
    """Return MiniLM's tokenizer.json without padding, cut at MINILM_TOKENS."""
    document = json.loads(content)
    document["padding"] = None
    document["truncation"] = {
        "max_length": MINILM_TOKENS,
        "strategy": "LongestFirst",
        "stride": 0,
        "direction": "Right",
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
