"""Settings that any login may change make the server describe the plans it makes, with the values in them,
also those of statements inside our functions. So a value that the caller may not see must not be in one."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import psycopg
from conftest import Database

NOSY = "-c debug_print_parse=on -c debug_print_rewritten=on -c debug_print_plan=on -c client_min_messages=log"
HIDDEN = "zqxhidden"


def bytes_of(value: bytes) -> str:
    """As the server writes the bytes of a constant: signed numbers."""
    return " ".join(str(byte - 256 if byte > 127 else byte) for byte in value)


def plans(connection: psycopg.Connection[Any], *statements: str) -> str:
    """Run statements and return all that the server says meanwhile, in one line."""
    said: list[str] = []
    connection.add_notice_handler(lambda message: said.append(message.message_primary or ""))
    connection.add_notice_handler(lambda message: said.append(message.message_detail or ""))
    for statement in statements:
        connection.execute(statement.encode())
    return re.sub(r"\s+", " ", " ".join(said))


def test_plans_show_nothing_of_others(database: Database) -> None:
    name, dsn = database.make_login("memvec_runtime")
    with database.admin() as admin:
        space = admin.execute("SELECT memvec.add_embedding_space('plans', 2)").fetchone()
        assert space is not None
        admin.execute("SELECT memvec.bind_role(%s, 'plans-own')", [name])
        secret = admin.execute("SELECT value FROM memvec.secrets WHERE name = 'person_key'").fetchone()
        vector = admin.execute("SELECT halfvec_send('[0.7187,-0.3152]'::public.halfvec)").fetchone()
        assert secret is not None
        assert vector is not None
        admin.execute(
            "SELECT memvec.add_memory(%s, 'memory', %s || i, p_embedding => '[0.7187,-0.3152]',"
            " p_space => %s) FROM generate_series(1, 120) AS i",
            ["plans-others", HIDDEN, space[0]],
        )
        admin.execute("SELECT memvec.add_memory('sms:+15550107777', 'memory', %s)", [HIDDEN])
    batch = [
        {
            "op": "sync_memories",
            "op_id": str(uuid.uuid4()),
            "identity": "plans-own",
            "target": "memory",
            "source": str(uuid.uuid4()),
            "contents": ["mine"],
        }
    ]
    with psycopg.connect(dsn, autocommit=True, options=NOSY) as connection:
        said = plans(
            connection,
            "SELECT * FROM memvec.hello('plans-own', 'plans', 2)",
            "SELECT * FROM memvec.canonical_identity('sms:+15550107777')",
            "SELECT * FROM memvec.add_memory('plans-own', 'memory', 'my own note')",
            f"SELECT * FROM memvec.apply_ops('{json.dumps(batch)}')",
            f"SELECT * FROM memvec.recall_memory('plans-own', 'note', '[1,0]', {space[0]}, 'all')",
            f"SELECT * FROM memvec.prefetch('plans-own', 'note', '[1,0]', {space[0]}, p_min_similarity => 0)",
            "SELECT * FROM memvec.embedding_coverage()",
            "SELECT * FROM memvec.stats()",
            f"SELECT * FROM memvec.store_embeddings({space[0]}, '{{entry}}', '{{1}}', '{{x}}', NULL)",
            "SELECT * FROM memvec.housekeeping()",
        )
    assert bytes_of(b"my own note") in said, "the test no longer sees the values in plans"
    # a halfvec in memory: its values in the machine's byte order
    values = vector[0][4:]
    little = b"".join(values[i : i + 2][::-1] for i in range(0, len(values), 2))
    for what, value in (
        ("a text", HIDDEN.encode()),
        ("a vector", little),
        ("a vector", values),
        ("the secret", secret[0][:8]),
        ("the secret", secret[0][16:24]),
    ):
        assert bytes_of(value) not in said, f"{what} of others is in a plan"
