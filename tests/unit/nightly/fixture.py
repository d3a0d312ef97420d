"""A day of traffic as it might be, by a fixed seed: 2,000 requests, models that mostly agree, texts of any kind.

The day before is rechecked too, so that there is something to compare scores with.
"""

from __future__ import annotations

import json
import math
import random

from functions.core.capture import Body, line_of
from functions.core.policy import Capture as Wish
from tests.unit.nightly.night import DAY, Night, exchange, verdict

REQUESTS = 2000
TEXTS = (
    "thank you, that helped a lot",
    "where is my order? it was due on Tuesday",
    "你们的客服太差了，垃圾",
    "you are an idiot and everyone knows it",
    "<script>alert('x')</script> & <b>bold</b>",
    "مرحبا، كيف يمكنني تغيير عنواني؟",
    "go back to where you came from",
    "a" * 300,
    "\u202egnp.exe\u202c looks like a picture",
    "no spaces https://example.com/" + "x" * 180,
)


def seeded(seed: int = 5) -> Night:
    """A night whose day, and the one before, were captured; both are rechecked."""
    chance = random.Random(seed)
    scores: dict[str, float] = {}

    def judge(record: bytes) -> bytes:
        asked = json.loads(record)["text"]
        score = scores[asked]
        return json.dumps(verdict("toxic" if score >= 0.5 else "ok", round(score, 6), "2026.11")).encode()

    night = Night(judge)
    night.shard_records = 500
    for back, date in ((1, "2026-11-30"), (0, "2026-12-01")):
        lines = []
        for number in range(REQUESTS):
            text = f"{TEXTS[number % len(TEXTS)]} #{number}-{back}"
            light = _score(chance, 0.12 if back else 0.18)
            scores[text] = min(1.0, max(0.0, light + chance.gauss(0, 0.12)))
            hour = min(23.99, max(0.0, chance.gauss(14, 5)))
            said = verdict("toxic" if light >= 0.5 else "ok", round(light, 6), "7" if hour < 15 else "8")
            parts = {
                "route": "/realtime/chat" if number % 3 else "/v1/models/{model}/invocations",
                "lane": "serverless" if number % 7 == 0 else "dedicated",
                "input": Body(json.dumps({"text": text}).encode(), "application/json"),
                "output": Body(json.dumps(said).encode(), "application/json"),
            }
            wish = Wish(1.0, bodies=number % 50 != 0)
            at = DAY.begins - back * 86_400 + hour * 3600
            lines.append(line_of(exchange(back * REQUESTS + number, text, at, **parts), wish))
        night.capture([*lines, *lines[:7], b"{broken\n"], f"date={date}/hour=08/a.gz")
        night.run(date=date)
    return night


def _score(chance: random.Random, flagged: float) -> float:
    """Most texts are harmless to the model, few are not, some in between."""
    centre = 2.2 if chance.random() < flagged else -2.6
    return 1 / (1 + math.exp(-chance.gauss(centre, 1.4)))
