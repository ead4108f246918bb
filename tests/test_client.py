"""The client: every function and argument of SQL is reachable, values survive, errors have a name."""

from __future__ import annotations

import inspect
import json
import math
import re
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from conftest import Database
from psycopg.conninfo import make_conninfo

from hermes_pgsql import errors, pool, results
from hermes_pgsql.client import Memvec
from hermes_pgsql.values import clean_json, half_vector

DIM = 3
SMILE = "\N{GRINNING FACE}"
HALVES = SMILE.encode("utf-16-be").decode("utf-16-be", "surrogatepass")


@pytest.fixture(scope="module")
def memvec(database: Database) -> Iterator[Memvec]:
    yield Memvec(database.runtime_dsn)
    pool.close_all()


@pytest.fixture(scope="module")
def space(memvec: Memvec) -> int:
    greeting = memvec.hello("client-tests", "test-model", DIM)
    assert greeting.space_id is not None
    return greeting.space_id


@pytest.fixture
def theme(request: pytest.FixtureRequest) -> str:
    """A theme of the test's own, so that tests share a database and nothing else."""
    return f"t-{uuid4().hex[:12]}"


def one(database: Database, query: str, *parameters: object) -> Any:
    with database.admin() as connection:
        row = connection.execute(query, parameters).fetchone()  # pyright: ignore[reportArgumentType]
    assert row is not None
    return row[0]


def embedded_rows(memvec: Memvec, theme: str) -> tuple[int, int]:
    for row in memvec.stats():
        if row.agent_identity == theme:
            return row.entries_embedded, row.turns_embedded
    return 0, 0


# Completeness ---------------------------------------------------------------------------------------------


def called_functions() -> dict[str, set[str]]:
    """Function name -> argument names, as the client's SQL has them."""
    calls: dict[str, set[str]] = {}
    for method in vars(Memvec).values():
        if not inspect.isfunction(method):
            continue
        for name, arguments in re.findall(
            r"memvec\.(\w+)\((.*?)\)\s*(?:\"|$)", inspect.getsource(method), re.DOTALL | re.MULTILINE
        ):
            calls[name] = set(re.findall(r"(p_\w+) =>", arguments))
    return calls


def test_every_method_passes_every_argument_of_its_function(database: Database) -> None:
    calls = called_functions()
    assert len(calls) >= 25
    with database.admin() as connection:
        rows = connection.execute(
            """
            SELECT p.proname,
                   array(SELECT a.name FROM unnest(p.proargnames, p.proargmodes) AS a (name, mode)
                          WHERE coalesce(a.mode, 'i') = 'i')
              FROM pg_proc AS p WHERE p.pronamespace = 'memvec'::regnamespace
            """
        ).fetchall()
    signatures = {name: set(arguments) for name, arguments in rows}
    assert {name: signatures.get(name) for name in calls} == calls


def test_every_function_an_agent_may_call_has_a_method(database: Database) -> None:
    with database.admin() as connection:
        rows = connection.execute(
            """
            SELECT p.proname FROM pg_proc AS p
             WHERE p.pronamespace = 'memvec'::regnamespace
               AND has_function_privilege('memvec_runtime', p.oid, 'EXECUTE')
            """
        ).fetchall()
    # search_vector is there for people at a psql prompt who wonder what a text is found by.
    assert {name for (name,) in rows} - {"search_vector"} <= set(called_functions())


def test_rows_come_back_with_columns_of_a_newer_schema_left_out(database: Database) -> None:
    with (
        database.admin() as connection,
        connection.cursor(row_factory=results.record_row(results.Chore)) as cursor,
    ):
        query = "SELECT 'b' AS added_later, 7 AS rows, 'counts' AS task"
        assert cursor.execute(query).fetchall() == [results.Chore("counts", 7)]
        with pytest.raises(errors.NotMigrated, match="no column rows"):
            cursor.execute("SELECT 'counts' AS task").fetchall()


# A first conversation ---------------------------------------------------------------------------------------


def test_hello_and_identity(memvec: Memvec, space: int, theme: str) -> None:
    greeting = memvec.hello(theme, "test-model", DIM)
    assert (greeting.agent_identity, greeting.kind, greeting.space_id) == (theme, "theme", space)
    assert (greeting.entries, greeting.turns, greeting.warnings) == (0, 0, [])
    assert greeting.schema_version == memvec.schema_version() >= 1
    other = memvec.hello(theme, "another-model", DIM)
    assert other.space_id is None
    assert "another-model" in other.warnings[0]
    assert memvec.canonical_identity("Ops").agent_identity == "ops"
    direct = memvec.canonical_identity("agent:main:whatsapp:dm:+15551234567")
    assert direct.agent_identity == "whatsapp-dm"
    assert isinstance(direct.person_key, UUID)
    agent = memvec.register_agent(theme, {"model": "x"})
    assert agent.agent_identity == theme
    assert agent.last_seen >= agent.first_seen


def test_entries_are_added_replaced_removed_and_found(memvec: Memvec, space: int, theme: str) -> None:
    first = memvec.add_memory(
        theme, "memory", "The build host is called anvil", metadata={"a": 1}, embedding=[1, 0, 0], space=space
    )
    assert first.outcome == "added"
    assert len(first.content_hash) == 32
    again = memvec.add_memory(theme, "memory", "The build host is called anvil")
    assert (again.outcome, again.id) == ("duplicate", first.id)
    found = memvec.recall_memory(theme, "build host", embedding=[1, 0, 0], space=space)
    assert [row.content for row in found] == ["The build host is called anvil"]
    assert found[0].metadata == {"a": 1}
    assert found[0].score == pytest.approx(1.0, abs=0.01)
    assert (found[0].vector_rank, found[0].text_rank, found[0].themes) == (1, 1, [theme])
    replaced = memvec.replace_memory(theme, "memory", "anvil", "The build host is called hammer")
    assert (replaced.outcome, replaced.matches) == ("replaced", 1)
    assert [row.content for row in memvec.recall_memory(theme, "build host")] == [
        "The build host is called hammer"
    ]
    assert memvec.remove_memory(theme, "memory", "no such text").outcome == "absent"
    removed = memvec.remove_memory(theme, "memory", "hammer")
    assert (removed.outcome, removed.matches) == ("removed", 1)
    assert memvec.recall_memory(theme, "build host") == []


def test_a_recall_is_explained(memvec: Memvec, space: int, theme: str) -> None:
    row = memvec.add_memory(theme, "memory", "The anvil is heavy", embedding=[1, 0, 0], space=space)
    steps = {
        step.step: step
        for step in memvec.explain_recall(theme, row.id, "heavy hammer", embedding=[1, 0, 0], space=space)
    }
    assert list(steps) == ["theme", "person", "target", "time", "vector", "floor", "words", "fused"]
    assert (steps["vector"].outcome, steps["vector"].rank, steps["vector"].candidates) == ("found", 1, 1)
    assert steps["vector"].score == pytest.approx(1.0, abs=0.01)
    assert (steps["words"].terms, steps["words"].detail) == (["heavi"], "without hammer")
    turn = memvec.append_turn(theme, "s1", "user", "The anvil was moved")
    kinds = memvec.explain_recall(theme, turn.id, "anvil", kind="turn", exclude_session="s1")
    assert next(step.step for step in kinds if step.outcome == "removed") == "session"
    assert memvec.explain_recall(f"{theme}-none", 2**62, "anvil") == []


def test_turns_are_appended_and_found(memvec: Memvec, space: int, theme: str) -> None:
    moment = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    turn = memvec.append_turn(
        theme, "s1", "user", "Where is the anvil?", ts=moment, embedding=(0.0, 1.0, 0.0), space=space
    )
    assert memvec.append_turn(theme, "s1", "user", "Where is the anvil?").id == turn.id
    memvec.append_turn(theme, "s2", "assistant", "The anvil is in the shed", parent_session_id="s1")
    rows = memvec.recall_conversation(theme, "anvil")
    assert {(row.session_id, row.role) for row in rows} == {("s1", "user"), ("s2", "assistant")}
    assert [row.ts for row in rows if row.session_id == "s1"] == [moment]
    assert {row.session_id for row in memvec.recall_conversation(theme, "anvil", exclude_session="s1")} == {
        "s2"
    }
    in_session = memvec.recall_conversation(theme, "anvil", scope="session", session_id="s1")
    assert {row.session_id for row in in_session} == {"s1"}
    assert {row.session_id for row in memvec.recall_conversation(theme, "anvil", until=moment)} <= {"s1"}
    assert {
        row.session_id for row in memvec.recall_conversation(theme, "anvil", since=moment + timedelta(1))
    } == {"s2"}
    kinds = {row.kind for row in memvec.prefetch(theme, "anvil", embedding=[0, 1, 0], space=space)}
    assert kinds == {"turn"}
    aged = memvec.recall_conversation(theme, "anvil", half_life=timedelta(days=1))
    assert aged[0].session_id == "s2"


def test_files_are_mirrored(memvec: Memvec, theme: str) -> None:
    source = uuid4()
    assert memvec.sync_memories(theme, source, "user", ["likes tea", "lives in Bern"]) == results.Synced(
        2, 0, 0
    )
    assert memvec.sync_memories(theme, source, "user", ["lives in Bern"]) == results.Synced(0, 1, 1)
    other_home = uuid4()
    memvec.sync_memories(theme, other_home, "user", ["lives in Bern"])
    assert memvec.remove_memory(theme, "user", "Bern", source=other_home).outcome == "released"
    assert memvec.sync_memories(theme, source, "user", []) == results.Synced(0, 1, 0)


def test_delegations_are_recorded_once(memvec: Memvec, theme: str) -> None:
    assert memvec.record_delegation(theme, "s1", "c1", attrs={"task": "look"}).outcome == "added"
    assert memvec.record_delegation(theme, "s1", "c1").outcome == "duplicate"


def test_operations_are_applied_once_and_bad_ones_reported(memvec: Memvec, theme: str) -> None:
    good, bad = uuid4(), uuid4()
    ops: list[dict[str, object]] = [
        {
            "op_id": good,
            "op": "append_turn",
            "identity": theme,
            "session_id": "s",
            "role": "user",
            "content": "a\0b",
        },
        {"op_id": bad, "op": "add_memory", "identity": theme, "target": "memory", "content": "  "},
    ]
    first, second = memvec.apply_ops(ops)
    assert (first.op_id, first.outcome, first.error_code) == (good, "added", None)
    assert (second.op_id, second.outcome, second.error_code) == (bad, "error", "MV001")
    assert second.message
    assert memvec.apply_ops(ops)[0] == first
    assert memvec.apply_ops([]) == []


def test_vectors_arrive_later(memvec: Memvec, space: int, theme: str) -> None:
    entry = memvec.add_memory(theme, "memory", "a note")
    turn = memvec.append_turn(theme, "s", "user", "a turn")
    stored = memvec.store_embeddings(
        space,
        ["entry", "turn", "entry", "entry", "entry"],
        [entry.id, turn.id, entry.id, 2**62, entry.id],
        [entry.content_hash, turn.content_hash, b"other text", b"", entry.content_hash],
        [[1, 2, 3], array("f", [4, 5, 6]), [1, 2, 3], [1, 2, 3], [math.nan, 1, 1]],
    )
    assert stored == results.Stored(stored=2, changed=1, gone=1, invalid=1)
    assert embedded_rows(memvec, theme) == (1, 1)
    never = memvec.add_memory(theme, "memory", "a note without a vector", embed=False)
    refused = memvec.store_embeddings(space, ["entry"], [never.id], [never.content_hash], [[1, 2, 3]])
    assert refused == results.Stored(stored=0, changed=0, gone=1, invalid=0)
    assert memvec.store_embeddings(space, [], [], [], []) == results.Stored(0, 0, 0, 0)


def test_upkeep_and_statistics(memvec: Memvec, space: int, theme: str) -> None:
    memvec.add_memory(theme, "memory", "counted")
    assert [row.entries for row in memvec.stats() if row.agent_identity == theme] == [1]
    assert {row.kind for row in memvec.embedding_coverage() if row.space_id == space} == {"entry", "turn"}
    assert all(chore.rows >= 0 for chore in memvec.housekeeping())


# Roles ------------------------------------------------------------------------------------------------------


def test_administrators_manage_spaces_settings_and_bindings(database: Database, theme: str) -> None:
    _, dsn = database.make_login("memvec_admin")
    admin = Memvec(dsn)
    made = admin.add_embedding_space(f"model-of-{theme}", 4, "q: ", "d: ", 0.2)
    assert made > 0
    assert admin.drop_embedding_space(made) is True
    role, bound_dsn = database.make_login("memvec_runtime")
    admin.bind_role(role, theme)
    bound = Memvec(bound_dsn)
    bound.add_memory(theme, "memory", "mine")
    with pytest.raises(errors.NotPermitted):
        bound.add_memory("another-theme", "memory", "not mine")
    with pytest.raises(errors.ScopeRefused):
        bound.recall_memory(theme, "x", scope="another-theme")
    assert admin.unbind_role(role, theme) == 1
    with pytest.raises(errors.BadSetting):
        admin.set_setting("no_such_setting", "1")


def test_administrators_maintain(database: Database, memvec: Memvec, theme: str) -> None:
    admin = Memvec(database.make_login("memvec_admin")[1])
    memvec.add_memory(theme, "memory", "a note")
    memvec.append_turn(theme, "s", "user", "old", ts=datetime(2001, 1, 1, tzinfo=UTC))
    admin.set_ttl(theme, 90)
    assert sum(change.rows for change in admin.prune()) == 1
    assert sum(change.rows for change in admin.prune(dry_run=False, limit=5)) == 1

    moved = {(c.table_name, c.action): c.rows for c in admin.remap(theme, f"{theme}-new", dry_run=False)}
    assert moved["memory_entries", "moved"] == 1
    assert memvec.add_memory(theme, "memory", "a note").outcome == "duplicate"
    cleaned = admin.cleanup([f"{theme}-new"], dry_run=False, limit=10)
    assert {(c.rows, c.remaining) for c in cleaned if c.table_name == "memory_entries"} == {(1, 0)}
    assert sum(change.rows for change in admin.erase_theme(f"{theme}-new", dry_run=False)) > 0

    contact = f"agent:main:telegram:dm:{theme}"
    memvec.add_memory(contact, "memory", "likes tea")
    assert sum(change.rows for change in admin.erase_person(contact)) == 1
    assert sum(change.rows for change in admin.erase_person(contact, dry_run=False, limit=1)) == 1
    assert memvec.recall_memory(contact, "tea") == []
    with pytest.raises(errors.InvalidArgument):
        admin.erase_person(theme)
    with pytest.raises(errors.InvalidArgument):
        admin.remap(theme, theme)


def test_embedders_claim_and_report(database: Database, memvec: Memvec, space: int, theme: str) -> None:
    row = memvec.add_memory(theme, "memory", "to be embedded")
    _, dsn = database.make_login("memvec_embedder")
    embedder = Memvec(dsn)
    claimed = {(item.kind, item.id): item for item in embedder.claim_pending(space, 10_000)}
    assert claimed["entry", row.id].content == "to be embedded"
    assert claimed["entry", row.id].content_hash == row.content_hash
    assert embedder.report_embedding_failure(space, ["entry"], [row.id], ["no\0good"]) == 1


def test_what_the_role_may_not_do_is_said_plainly(memvec: Memvec) -> None:
    with pytest.raises(errors.DatabaseFailure, match="may not") as caught:
        memvec.claim_pending(1)
    assert caught.value.sqlstate == "42501"


# Errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda m: m.add_memory("x", "memory", "  \u3000 "), errors.InvalidArgument),
        (lambda m: m.add_memory("x", "elsewhere", "text"), errors.InvalidArgument),
        (lambda m: m.remove_memory("x", "memory", " "), errors.InvalidArgument),
        (lambda m: m.append_turn("x", "s", "", "text"), errors.InvalidArgument),
        (lambda m: m.recall_memory("x", "q", scope="whatsapp-dm"), errors.ScopeRefused),
        (lambda m: m.recall_memory("x", "q", embedding=[1, 2, 3], space=999_999), errors.UnknownSpace),
        (lambda m: m.add_memory("x", "memory", "t", embedding=[1, 2, 3], space=10**30), errors.UnknownSpace),
        (
            lambda m: m.sync_memories("agent:a:sms:dm:+15551234567", uuid4(), "user", ["x"]),
            errors.FileEntryRefused,
        ),
    ],
)
def test_refusals_have_a_class_and_a_sentence(
    memvec: Memvec, space: int, call: Callable[[Memvec], object], expected: type[errors.MemvecError]
) -> None:
    with pytest.raises(expected) as caught:
        call(memvec)
    assert caught.value.message
    assert caught.value.__suppress_context__


def test_a_vector_of_another_width_is_refused(memvec: Memvec, space: int, theme: str) -> None:
    with pytest.raises(errors.WrongDimension):
        memvec.add_memory(theme, "memory", "text", embedding=[1, 2], space=space)


def test_writes_refuse_a_high_isolation_level(database: Database, theme: str) -> None:
    dsn = make_conninfo(database.runtime_dsn, options="-c default_transaction_isolation=serializable")
    with pytest.raises(errors.IsolationTooHigh):
        Memvec(dsn).add_memory(theme, "memory", "text")


def test_a_database_that_was_never_migrated(empty_database: Database) -> None:
    for call in (Memvec.schema_version, Memvec.stats, lambda m: m.hello("x"), lambda m: m.prefetch("x", "q")):
        with pytest.raises(errors.NotMigrated) as caught:
            call(Memvec(empty_database.admin_dsn))
        assert "hermes-pgsql migrate" in str(caught.value)


def test_a_vector_for_a_database_without_pgvector(empty_database: Database) -> None:
    with pytest.raises(errors.NotMigrated, match="pgvector"):
        Memvec(empty_database.admin_dsn).prefetch("x", "q", embedding=[1, 2, 3], space=1)


def test_no_password_in_the_repr() -> None:
    assert repr(Memvec("postgresql://u:s3cret@h/db")) == "Memvec('postgresql://u:****@h/db')"


# Hostile values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [10**20, -(10**20), 0, -1, 2**31])
def test_any_limit_is_taken(memvec: Memvec, theme: str, limit: int) -> None:
    memvec.add_memory(theme, "memory", "anvil")
    memvec.append_turn(theme, "s", "user", "anvil")
    assert len(memvec.recall_memory(theme, "anvil", limit=limit)) <= 1
    assert len(memvec.recall_conversation(theme, "anvil", limit=limit)) <= 1
    assert len(memvec.prefetch(theme, "anvil", limit=limit)) <= 2


def test_nul_and_lone_surrogates_are_cleaned_everywhere(memvec: Memvec, theme: str) -> None:
    dirty = "an\0vil \ud83d x"
    metadata = {dirty: [dirty, {"deep": (dirty, {"k\0": None})}], "pair": HALVES}
    memvec.add_memory(f"{theme}\0", "memory", dirty, metadata=metadata)
    (row,) = memvec.recall_memory(theme, f"anvil {dirty}", target="memory")
    assert row.content == "an vil \N{REPLACEMENT CHARACTER} x"
    assert row.metadata == {
        row.content: [row.content, {"deep": [row.content, {"k ": None}]}],
        "pair": SMILE,
    }
    memvec.append_turn(theme, "s\0", "user", dirty, parent_session_id="\ud800", metadata=metadata)
    memvec.sync_memories(theme, uuid4(), "user", [dirty, "\0"])
    memvec.record_delegation(theme, "s\0", "c\0", "x\0", attrs=metadata)
    memvec.replace_memory(theme, "memory", "an\0vil", f"{dirty}!", previous_content=dirty, metadata=metadata)
    memvec.remove_memory(theme, "memory", dirty, previous_content=f"{dirty}!")
    assert memvec.canonical_identity("a\0b\ud800", {"a\0": "\ud800"}, ["c\0"], "bucket").agent_identity


def test_texts_that_other_programs_stumble_over(memvec: Memvec, theme: str) -> None:
    texts = [
        "'; DROP TABLE memvec.memory_entries; --",
        "100 %s %(x)s %",
        "\\",
        '{"a": 1}',
        "$$",
        "x" * 300_000,
        SMILE,
    ]
    for text in texts:
        assert memvec.add_memory(theme, "memory", text).outcome == "added"
        memvec.recall_memory(theme, text)
        memvec.prefetch(theme, text)
    assert [row.entries for row in memvec.stats() if row.agent_identity == theme] == [len(texts)]


@pytest.mark.parametrize("query", [None, "", " ", "\0", "%", "what is it", "rm -rf", "a & | ! ( ) : * <->"])
def test_any_question_is_taken(memvec: Memvec, theme: str, query: str | None) -> None:
    assert memvec.recall_memory(theme, query) == []
    assert memvec.recall_conversation(theme, query) == []
    assert memvec.prefetch(theme, query) == []


@pytest.mark.parametrize("identity", [None, "", "\0", " ", "x" * 5000, "agent:a:b:c:d"])
def test_any_identity_is_taken(memvec: Memvec, identity: str | None) -> None:
    assert memvec.hello(identity).agent_identity
    assert memvec.add_memory(identity, "memory", f"by {identity}").id


def test_metadata_of_any_make(memvec: Memvec, theme: str) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    metadata = {
        "n": math.nan,
        "i": math.inf,
        "when": moment,
        "id": UUID(int=1),
        "set": {1},
        "big": 10**5000,
        7: b"x",
    }
    memvec.add_memory(theme, "memory", "odd", metadata=metadata)  # pyright: ignore[reportArgumentType]
    (row,) = memvec.recall_memory(theme, "odd")
    assert row.metadata["n"] is None
    assert row.metadata["when"] == moment.isoformat()
    assert row.metadata["id"] == str(UUID(int=1))
    assert row.metadata["set"] == [1]
    assert row.metadata["7"]


def test_json_that_contains_itself_is_refused() -> None:
    knot: list[object] = []
    knot.append(knot)
    with pytest.raises(errors.InvalidArgument, match="nested"):
        clean_json({"knot": knot})
    assert json.dumps(clean_json({"a": ({"b"}, [1.5, True, None])})) == '{"a": [["b"], [1.5, true, null]]}'


@pytest.mark.parametrize(
    "embedding",
    [
        [],
        [0, 0, 0],
        [1e-9, 0, 0],
        [math.nan, 1, 1],
        [math.inf, 1, 1],
        [1e5, 1, 1],
        [65520.0, 1, 1],
        [1e300, 1, 1],
    ],
)
def test_a_vector_no_cosine_can_be_taken_of_leaves_the_row_text_only(
    memvec: Memvec, space: int, theme: str, embedding: list[float]
) -> None:
    assert (
        memvec.add_memory(theme, "memory", "still stored", embedding=embedding, space=space).outcome
        == "added"
    )
    memvec.append_turn(theme, "s", "user", "still stored", embedding=embedding, space=space)
    assert embedded_rows(memvec, theme) == (0, 0)
    (row,) = memvec.recall_memory(theme, "stored", embedding=embedding, space=space)
    assert row.score is None


@pytest.mark.parametrize(
    "embedding",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        array("f", [1, 2, 3]),
        array("d", [1, 2, 3]),
        array("f", [1, 2, 3]).tobytes(),
        bytearray(array("f", [1, 2, 3]).tobytes()),
        memoryview(array("f", [1, 2, 3])),
        range(1, 4),
    ],
)
def test_vectors_of_many_makes(memvec: Memvec, space: int, theme: str, embedding: Any) -> None:
    memvec.add_memory(theme, "memory", "x", embedding=embedding, space=space)
    (row,) = memvec.recall_memory(theme, None, embedding=embedding, space=space)
    assert row.score == pytest.approx(1.0, abs=0.001)


def test_a_numpy_vector() -> None:
    numpy = pytest.importorskip("numpy")
    expected = half_vector([1, 2, 3])
    assert half_vector(numpy.array([1, 2, 3], dtype="float32")) == expected
    assert half_vector(numpy.array([1, 2, 3], dtype="float64")[::1]) == expected
    with pytest.raises(errors.InvalidArgument):
        half_vector(numpy.ones((2, 2), dtype="float32"))


@pytest.mark.parametrize("embedding", ["[1,2,3]", ["a"], [None], 5, [[1.0]], b"123", {"a": 1}])
def test_what_is_no_vector_is_refused(embedding: Any) -> None:
    with pytest.raises(errors.InvalidArgument, match="row of numbers"):
        half_vector(embedding)


def test_times_without_zone_are_local_and_extremes_are_taken(memvec: Memvec, theme: str) -> None:
    naive = datetime(2026, 5, 6, 7, 8)  # noqa: DTZ001 (the point of the test)
    memvec.append_turn(theme, "s", "user", "anvil", ts=naive)
    (row,) = memvec.recall_conversation(theme, "anvil")
    assert row.ts == naive.astimezone()
    for moment in (datetime.min, datetime.max):  # noqa: DTZ901 (as above)
        memvec.recall_conversation(theme, "anvil", since=moment, until=moment)


# This host's rules ------------------------------------------------------------------------------------------


def test_governance_goes_with_every_call(database: Database, theme: str) -> None:
    rules = {"aliases": {f"{theme}-x": theme}, "allowed_themes": [theme]}
    governed = Memvec(database.runtime_dsn, rules)
    assert governed.hello(f"{theme}-x").agent_identity == theme
    assert governed.hello("some-other").agent_identity == "default"
    governed.add_memory(f"{theme}-x", "memory", "governed entry")
    assert len(governed.with_timeout(5).recall_memory(f"{theme}-x", "governed")) == 1
    assert len(Memvec(database.runtime_dsn).recall_memory(theme, "governed")) == 1


# Broken connections -----------------------------------------------------------------------------------------


class Blocked:
    """A call that waits for a lock which the administrator holds, so that its connection can be broken."""

    def __init__(self, database: Database, call: Callable[[], object]) -> None:
        self.database = database
        self.outcome: object = None
        self.thread = threading.Thread(target=self._run, args=(call,))

    def _run(self, call: Callable[[], object]) -> None:
        try:
            self.outcome = call()
        except errors.HermesPgsqlError as error:
            self.outcome = error

    def __enter__(self) -> Blocked:
        self.holder = psycopg.connect(self.database.admin_dsn)
        self.holder.execute("LOCK TABLE memvec.memory_entries, memvec.conversations IN ACCESS EXCLUSIVE MODE")
        self.thread.start()
        return self

    def terminate(self) -> None:
        """Break the connection of the waiting call."""
        waiting = """
            SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'hermes-pgsql'
               AND wait_event_type = 'Lock'
        """
        deadline = time.monotonic() + 90
        with self.database.admin() as connection:
            while connection.execute(waiting).fetchall() == []:
                assert time.monotonic() < deadline, "the call never waited for the lock"
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self.holder.close()
        self.thread.join(120)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, theme: m.add_memory(theme, "memory", "once"),
        lambda m, theme: m.append_turn(theme, "s", "user", "once"),
        lambda m, theme: m.apply_ops(
            [
                {
                    "op_id": "6a5b0000-0000-4000-8000-000000000001",
                    "op": "add_memory",
                    "identity": theme,
                    "target": "memory",
                    "content": "once",
                }
            ]
        ),
    ],
)
def test_a_call_that_may_be_repeated_survives_a_broken_connection(
    database: Database, memvec: Memvec, theme: str, call: Callable[[Memvec, str], object]
) -> None:
    with Blocked(database, lambda: call(memvec, theme)) as blocked:
        blocked.terminate()
    assert not isinstance(blocked.outcome, errors.HermesPgsqlError), blocked.outcome
    counts = [(row.entries, row.turns) for row in memvec.stats() if row.agent_identity == theme]
    assert counts in ([(1, 0)], [(0, 1)])


@pytest.mark.parametrize("method", ["replace_memory", "remove_memory"])
def test_a_call_that_may_not_be_repeated_says_that_nobody_knows(
    database: Database, memvec: Memvec, theme: str, method: str
) -> None:
    memvec.add_memory(theme, "memory", "old text")
    arguments = (theme, "memory", "old") + (("new text",) if method == "replace_memory" else ())
    with Blocked(database, lambda: getattr(memvec, method)(*arguments)) as blocked:
        blocked.terminate()
    assert isinstance(blocked.outcome, errors.DeliveryUnknown)
    assert errors.is_retryable(blocked.outcome)
    assert [row.content for row in memvec.recall_memory(theme, "text")] == ["old text"]


def test_a_server_that_keeps_breaking_connections_is_unavailable(
    database: Database, memvec: Memvec, theme: str
) -> None:
    with Blocked(database, lambda: memvec.recall_memory(theme, "anything")) as blocked:
        blocked.terminate()
        blocked.terminate()
    assert isinstance(blocked.outcome, errors.DatabaseUnavailable)
    assert not isinstance(blocked.outcome, errors.DeliveryUnknown)


def test_a_timeout_stops_the_statement_and_spares_the_next_one(
    database: Database, memvec: Memvec, theme: str
) -> None:
    hurried = memvec.with_timeout(2)
    with Blocked(database, lambda: hurried.recall_memory(theme, "anything")) as blocked:
        blocked.thread.join(120)
        assert isinstance(blocked.outcome, errors.DatabaseFailure)
        assert blocked.outcome.sqlstate == "57014"
        assert errors.is_retryable(blocked.outcome)
    for _ in range(20):
        assert hurried.recall_memory(theme, "anything") == []
