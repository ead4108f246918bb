"""Task prefixes by model name."""

from __future__ import annotations

import pytest

from hermes_pgsql.embedding.prefixes import Prefixes, prefixes_for

SENTENCE = "Represent this sentence for searching relevant passages: "
TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
NOMIC = ("search_query: ", "search_document: ")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nomic-embed-text", NOMIC),
        ("nomic-embed-text:latest", NOMIC),
        ("nomic-ai/nomic-embed-text-v1.5", NOMIC),
        ("hf.co/nomic-ai/nomic-embed-text-v1.5-GGUF:Q8_0", NOMIC),
        ("Nomic_Embed_Text", NOMIC),
        ("embeddinggemma:300m", ("task: search result | query: ", "title: none | text: ")),
        ("google/embeddinggemma-300m", ("task: search result | query: ", "title: none | text: ")),
        ("intfloat/multilingual-e5-small", ("query: ", "passage: ")),
        ("e5-large-v2", ("query: ", "passage: ")),
        ("intfloat/multilingual-e5-large-instruct", (TASK + " ", "")),
        ("BAAI/bge-large-en-v1.5", (SENTENCE, "")),
        ("bge-large", (SENTENCE, "")),
        ("bge-m3", ("", "")),
        ("bge-m3:latest", ("", "")),
        ("mxbai-embed-large", (SENTENCE, "")),
        ("mixedbread-ai/mxbai-embed-large-v1", (SENTENCE, "")),
        ("snowflake-arctic-embed:33m", (SENTENCE, "")),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", (SENTENCE, "")),
        ("snowflake-arctic-embed2", ("query: ", "")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", ("query: ", "")),
        ("Qwen/Qwen3-Embedding-0.6B", (TASK, "")),
        ("qwen3-embedding:8b", (TASK, "")),
        ("text-embedding-3-small", ("", "")),
        ("all-minilm", ("", "")),
        ("custom", ("", "")),
    ],
)
def test_prefixes_of_known_models(model: str, expected: tuple[str, str]) -> None:
    assert prefixes_for(model) == expected


def test_configured_prefixes_win() -> None:
    assert prefixes_for("custom", "Q> ", "D> ") == Prefixes("Q> ", "D> ")
    assert prefixes_for("nomic-embed-text", "Q> ") == Prefixes("Q> ", "search_document: ")


def test_prefixes_can_be_switched_off() -> None:
    assert prefixes_for("nomic-embed-text", "", "") == Prefixes("", "")
