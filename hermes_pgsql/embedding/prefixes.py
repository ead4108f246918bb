"""The words a model was trained to see in front of a question and of a document.

Without them some models find much less (measured by others: nomic-embed-text recall@1 0.50 instead of 0.88
for a smaller model). Taken from the model cards on huggingface.co of nomic-ai/nomic-embed-text-v1 and -v1.5
(also docs.nomic.ai, "Embed Text"), google/embeddinggemma-300m, intfloat/multilingual-e5-small and
multilingual-e5-large-instruct, BAAI/bge-large-en-v1.5 and bge-m3, mixedbread-ai/mxbai-embed-large-v1,
Snowflake/snowflake-arctic-embed-m-v1.5 and -l-v2.0, and Qwen/Qwen3-Embedding-0.6B. A model not listed gets no
prefix; configuration overrides the table.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Prefixes(NamedTuple):
    query: str
    document: str


_SENTENCE = "Represent this sentence for searching relevant passages: "
_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# The first pattern found in the bare model name wins, so special members of a family stand before it.
_TABLE: tuple[tuple[re.Pattern[str], Prefixes], ...] = (
    (re.compile(r"^nomic-embed-text"), Prefixes("search_query: ", "search_document: ")),
    (re.compile(r"^embedding-?gemma"), Prefixes("task: search result | query: ", "title: none | text: ")),
    (re.compile(r"(^|-)e5-.*instruct"), Prefixes(f"{_TASK} ", "")),
    (re.compile(r"(^|-)e5-(small|base|large)(-|$)"), Prefixes("query: ", "passage: ")),
    (re.compile(r"^bge-(small|base|large)(-en(-v1(\.5)?)?)?$"), Prefixes(_SENTENCE, "")),
    (re.compile(r"^bge-(small|base|large)-zh"), Prefixes("为这个句子生成表示以用于检索相关文章：", "")),
    (re.compile(r"^mxbai-embed-large"), Prefixes(_SENTENCE, "")),
    (re.compile(r"^(snowflake-)?arctic-embed(2|-[a-z]+-v2)"), Prefixes("query: ", "")),
    (re.compile(r"^(snowflake-)?arctic-embed"), Prefixes(_SENTENCE, "")),
    # The Qwen card has no space after "Query:", the e5 card has one.
    (re.compile(r"^qwen3-embedding"), Prefixes(_TASK, "")),
)


def prefixes_for(model: str, query_prefix: str | None = None, document_prefix: str | None = None) -> Prefixes:
    """The prefixes of `model`; a prefix that is given (also an empty one) replaces the table's.

    A tag (`:latest`), a path in front (`org/name`, `hf.co/org/name`) and a `-GGUF` ending do not matter.
    """
    name = model.strip().lower().rsplit("/", 1)[-1].split(":", 1)[0].replace("_", "-").removesuffix("-gguf")
    known = next((prefixes for pattern, prefixes in _TABLE if pattern.search(name)), Prefixes("", ""))
    return Prefixes(
        known.query if query_prefix is None else query_prefix,
        known.document if document_prefix is None else document_prefix,
    )
