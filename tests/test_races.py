"""Two sessions at once. One holds its transaction open while the other runs into it, so that every test says
exactly who came first; after each, no text is lost, none has come back, and none is there twice."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Literal

import psycopg
import pytest
from conftest import Database, TestServer
from psycopg.rows import dict_row

Row = dict[str, Any]
Retryable = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)
THEME = "theme"


@dataclass
class Race:
    """A fresh theme, and what it and the history hold."""

    database: Database
    theme: str

    def notes(self) -> list[str]:
        return self._column(
            "SELECT content FROM memvec.memory_entries WHERE agent_identity = %s ORDER BY content"
        )

    def turns(self) -> list[str]:
        return self._column("SELECT content FROM memvec.conversations WHERE agent_identity = %s ORDER BY id")

    def history(self) -> list[str]:
        return self._column("SELECT content FROM memvec.memory_history WHERE agent_identity = %s ORDER BY id")

    def write(self, function: str, *arguments: object) -> Row:
        """Call a write function in a session of its own, which ends at once."""
        with self.database.runtime() as connection:
            return run(connection, self.theme, function, *arguments)[0]

    def _column(self, query: str) -> list[str]:
        with self.database.admin() as connection:
            return [str(row[0]) for row in connection.execute(query, [self.theme])]


@pytest.fixture
def race(database: Database) -> Race:
    return Race(database, f"race-{secrets.token_hex(4)}")


@pytest.fixture
def unused(server: TestServer, template: str) -> Iterator[Database]:
    """A migrated database in which nobody has said hello yet."""
    name = f"memvec_{secrets.token_hex(4)}"
    server.create_database(name, template)
    yield Database(server, name)
    server.drop_database(name)


def run(connection: psycopg.Connection[Any], theme: str, function: str, *arguments: object) -> list[Row]:
    """Call `memvec.<function>`; the argument THEME stands for the race's theme."""
    given = [theme if argument is THEME else argument for argument in arguments]
    with connection.cursor(row_factory=dict_row) as cursor:
        places = ", ".join(["%s"] * len(given))
        return cursor.execute(f"SELECT * FROM memvec.{function}({places})", given).fetchall()


def waits_for(database: Database, waiting: int, holding: int, done: Future[Any]) -> bool:
    """Wait until one backend waits for the other (True), or its call has ended without (False)."""
    give_up = time.monotonic() + 90
    with database.admin() as observer:
        while time.monotonic() < give_up:
            row = observer.execute("SELECT %s = ANY (pg_blocking_pids(%s))", [holding, waiting]).fetchone()
            if row and row[0]:
                return True
            if done.done():
                return False
            time.sleep(0.005)
    raise AssertionError("the second session neither waits nor ends")


Call = tuple[Any, ...]


def one_after_the_other(
    race: Race,
    first: Call,
    second: Call,
    end: Literal["commit", "rollback"] = "commit",
    dsn: str | None = None,
) -> tuple[Row, Row]:
    """Run `first` and keep its transaction open, let `second` run into it, end the first, and return what
    both answered. The second must have waited. Errors: the second's."""
    dsn = dsn or race.database.runtime_dsn
    with (
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as two,
        ThreadPoolExecutor(1) as pool,
    ):
        answer = run(one, race.theme, *first)[0]
        later = pool.submit(run, two, race.theme, *second)
        waited = waits_for(race.database, two.info.backend_pid, one.info.backend_pid, later)
        one.execute(end)
        late_answer = later.result(timeout=180)[0]
        assert waited, "the second session did not wait for the first"
        return answer, late_answer


def add(content: str, target: str = "memory") -> Call:
    return ("add_memory", THEME, target, content)


def replace(old: str, new: str) -> Call:
    return ("replace_memory", THEME, "memory", old, new, old)


def remove(content: str) -> Call:
    return ("remove_memory", THEME, "memory", content, content)


def turn(content: str) -> Call:
    return ("append_turn", THEME, "s", "user", content)


def batch(*operations: Row) -> Call:
    return ("apply_ops", json.dumps(operations))


# What a theme holds before; the two calls; what they answer; what the theme and the history hold after.
ORDERED = {
    "add, add": ([], add("a"), add("a"), ("added", "duplicate"), ["a"], []),
    "add, add of two texts": ([], add("a"), add("b"), ("added", "added"), ["a", "b"], []),
    "replace, replace": (
        ["a"],
        replace("a", "b"),
        replace("a", "c"),
        ("replaced", "added"),
        ["b", "c"],
        ["a"],
    ),
    "replace, replace by the same": (
        ["a"],
        replace("a", "b"),
        replace("a", "b"),
        ("replaced", "duplicate"),
        ["b"],
        ["a"],
    ),
    "replace, replace on": (
        ["a"],
        replace("a", "b"),
        replace("b", "c"),
        ("replaced", "replaced"),
        ["c"],
        ["a", "b"],
    ),
    "replace there and back": (
        ["a"],
        replace("a", "b"),
        replace("b", "a"),
        ("replaced", "replaced"),
        ["a"],
        ["a", "b"],
    ),
    "two replaced by one text": (
        ["a", "b"],
        replace("a", "c"),
        replace("b", "c"),
        ("replaced", "merged"),
        ["c"],
        ["a", "b"],
    ),
    "two exchanged": (
        ["a", "b"],
        replace("a", "b"),
        replace("b", "a"),
        ("merged", "replaced"),
        ["a"],
        ["a", "b"],
    ),
    "remove, remove": (["a"], remove("a"), remove("a"), ("removed", "absent"), [], ["a"]),
    "replace, remove": (["a"], replace("a", "b"), remove("a"), ("replaced", "absent"), ["b"], ["a"]),
    "remove, replace": (["a"], remove("a"), replace("a", "b"), ("removed", "added"), ["b"], ["a"]),
    "replace, remove of the new": (
        ["a"],
        replace("a", "b"),
        remove("b"),
        ("replaced", "removed"),
        [],
        ["a", "b"],
    ),
    "add, replace by the same": (["a"], add("b"), replace("a", "b"), ("added", "merged"), ["b"], ["a"]),
    "replace, add of the same": (["a"], replace("a", "b"), add("b"), ("replaced", "duplicate"), ["b"], ["a"]),
    "replace, add of the old": (["a"], replace("a", "b"), add("a"), ("replaced", "added"), ["a", "b"], ["a"]),
    "add, remove of it": ([], add("a"), remove("a"), ("added", "removed"), [], ["a"]),
    "remove, add of it": (["a"], remove("a"), add("a"), ("removed", "added"), ["a"], ["a"]),
}


@pytest.mark.parametrize("name", ORDERED)
def test_second_writer_sees_what_the_first_did(race: Race, name: str) -> None:
    before, first, second, outcomes, notes, history = ORDERED[name]
    for content in before:
        race.write(*add(content))
    one, two = one_after_the_other(race, first, second)
    assert (one["outcome"], two["outcome"]) == outcomes
    assert race.notes() == notes
    assert race.history() == history


# The same calls when the first one is undone: the second does what it would have done alone.
UNDONE = {
    "add, add": ([], add("a"), add("a"), "added", ["a"], []),
    "replace, replace": (["a"], replace("a", "b"), replace("a", "c"), "replaced", ["c"], ["a"]),
    "remove, remove": (["a"], remove("a"), remove("a"), "removed", [], ["a"]),
    "replace, remove": (["a"], replace("a", "b"), remove("a"), "removed", [], ["a"]),
    "remove, replace": (["a"], remove("a"), replace("a", "b"), "replaced", ["b"], ["a"]),
    "add, replace by the same": (["a"], add("b"), replace("a", "b"), "replaced", ["b"], ["a"]),
    "replace, add of the same": (["a"], replace("a", "b"), add("b"), "added", ["a", "b"], []),
}


@pytest.mark.parametrize("name", UNDONE)
def test_second_writer_after_the_first_gave_up(race: Race, name: str) -> None:
    before, first, second, outcome, notes, history = UNDONE[name]
    for content in before:
        race.write(*add(content))
    _, two = one_after_the_other(race, first, second, "rollback")
    assert two["outcome"] == outcome
    assert race.notes() == notes
    assert race.history() == history


def test_targets_do_not_wait_for_each_other(race: Race) -> None:
    with pytest.raises(AssertionError, match="did not wait"):
        one_after_the_other(race, add("a"), add("a", "user"))
    assert race.notes() == ["a", "a"]


@pytest.mark.parametrize(("end", "outcome"), [("commit", "duplicate"), ("rollback", "added")])
def test_one_turn_twice(race: Race, end: Literal["commit", "rollback"], outcome: str) -> None:
    one, two = one_after_the_other(race, turn("hello"), turn("hello"), end)
    assert (one["outcome"], two["outcome"]) == ("added", outcome)
    assert (one["id"] == two["id"]) == (end == "commit")
    assert race.turns() == ["hello"]


def test_two_homes_let_go_of_one_note(race: Race) -> None:
    homes = [uuid.uuid4(), uuid.uuid4()]
    for home in homes:
        race.write("add_memory", THEME, "memory", "shared", None, home)
    one, two = one_after_the_other(
        race,
        ("sync_memories", THEME, homes[0], "memory", []),
        ("sync_memories", THEME, homes[1], "memory", []),
    )
    assert (one["retired"], two["retired"]) == (0, 1)
    assert race.notes() == []
    assert race.history() == ["shared"]


def test_one_home_lets_go_while_another_takes_up(race: Race) -> None:
    homes = [uuid.uuid4(), uuid.uuid4()]
    race.write("add_memory", THEME, "memory", "shared", None, homes[0])
    one, two = one_after_the_other(
        race,
        ("sync_memories", THEME, homes[0], "memory", []),
        ("sync_memories", THEME, homes[1], "memory", ["shared"]),
    )
    assert (one["retired"], two["added"]) == (1, 1)
    assert race.notes() == ["shared"]


def test_one_home_takes_up_while_another_lets_go(race: Race) -> None:
    homes = [uuid.uuid4(), uuid.uuid4()]
    race.write("add_memory", THEME, "memory", "shared", None, homes[0])
    one, two = one_after_the_other(
        race,
        ("sync_memories", THEME, homes[1], "memory", ["shared"]),
        ("sync_memories", THEME, homes[0], "memory", []),
    )
    assert (one["kept"], two["retired"]) == (1, 0)
    assert race.notes() == ["shared"]


def operation(op: str, theme: str, **arguments: object) -> Row:
    return {"op_id": str(uuid.uuid4()), "op": op, "identity": theme, **arguments}


def test_a_batch_sent_twice_at_once(race: Race) -> None:
    """As after a timeout that the client saw and the server did not."""
    operations = [
        operation("add_memory", race.theme, target="memory", content="a"),
        operation("replace_memory", race.theme, target="memory", old_text="a", content="b"),
        operation("add_memory", race.theme, target="memory", content="a"),
        operation("remove_memory", race.theme, target="memory", old_text="b"),
    ]
    one, two = one_after_the_other(race, batch(*operations), batch(*operations))
    # The first note is gone again, and with it what its hash would say.
    assert two == {**one, "content_hash": None}
    assert race.notes() == ["a"]
    assert race.history() == ["a", "b"]


def test_a_batch_sent_twice_at_once_after_the_first_gave_up(race: Race) -> None:
    operations = [operation("add_memory", race.theme, target="memory", content="a")]
    one, two = one_after_the_other(race, batch(*operations), batch(*operations), "rollback")
    assert (one["outcome"], two["outcome"]) == ("added", "added")
    assert race.notes() == ["a"]


def test_a_batch_of_turns_sent_twice_at_once(race: Race) -> None:
    """Turns take no lock that would make the second batch wait before it looks: it is told to try again."""
    operations = [operation("append_turn", race.theme, session_id="s", role="user", content="hello")]
    with pytest.raises(psycopg.errors.SerializationFailure):
        one_after_the_other(race, batch(*operations), batch(*operations))
    again = race.write(*batch(*operations))
    assert again["outcome"] == "added"
    assert race.turns() == ["hello"]


def test_a_batch_with_one_operation_in_common(race: Race) -> None:
    """The operation in common is done once, and what is new in the second batch is not lost."""
    common = operation("append_turn", race.theme, session_id="s", role="user", content="common")
    extra = operation("append_turn", race.theme, session_id="s", role="user", content="extra")
    with pytest.raises(psycopg.errors.SerializationFailure):
        one_after_the_other(race, batch(common), batch(common, extra))
    assert race.turns() == ["common"], "a batch that is sent again has left nothing behind"
    race.write(*batch(common, extra))
    assert race.turns() == ["common", "extra"]


def test_a_renamed_theme_sends_the_batch_back(race: Race) -> None:
    """An alias that commits while a batch waits for the theme's lock: nothing is written to the old name."""
    note = operation("add_memory", race.theme, target="memory", content="a")
    new_name = f"{race.theme}-new"
    with (
        psycopg.connect(race.database.admin_dsn) as renaming,
        race.database.runtime() as writing,
        ThreadPoolExecutor(1) as pool,
    ):
        renaming.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('memvec theme ' || %s, 0))", [race.theme]
        )
        renaming.execute("INSERT INTO memvec.identity_aliases VALUES (%s, %s)", [race.theme, new_name])
        later = pool.submit(run, writing, race.theme, *batch(note))
        assert waits_for(race.database, writing.info.backend_pid, renaming.info.backend_pid, later)
        renaming.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            later.result(timeout=180)
    race.write(*batch(note))
    assert race.notes() == []
    assert Race(race.database, new_name).notes() == ["a"]


def test_a_renamed_theme_takes_a_single_write_along(race: Race) -> None:
    new_name = f"{race.theme}-new"
    with (
        psycopg.connect(race.database.admin_dsn) as renaming,
        race.database.runtime() as writing,
        ThreadPoolExecutor(1) as pool,
    ):
        renaming.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('memvec theme ' || %s, 0))", [race.theme]
        )
        renaming.execute("INSERT INTO memvec.identity_aliases VALUES (%s, %s)", [race.theme, new_name])
        later = pool.submit(run, writing, race.theme, *add("a"))
        assert waits_for(race.database, writing.info.backend_pid, renaming.info.backend_pid, later)
        renaming.commit()
        assert later.result(timeout=180)[0]["outcome"] == "added"
    assert race.notes() == []
    assert Race(race.database, new_name).notes() == ["a"]


ROUNDS = 40


def test_batches_in_opposite_order(race: Race) -> None:
    """Two homes send the same themes in opposite order, again and again, with texts in common. A batch may be
    sent back whole, but no operation fails for it, and in the end each is done exactly once."""
    themes = [f"{race.theme}-{letter}" for letter in "abcd"]
    barrier = Barrier(2)
    retries: Counter[str] = Counter()

    def operations(home: str, number: int) -> list[Row]:
        made: list[Row] = []
        for theme in themes:
            made += [
                operation("add_memory", theme, target="memory", content=f"{home} {number}"),
                operation("add_memory", theme, target="memory", content=f"both {number}"),
                operation("append_turn", theme, session_id="s", role="user", content=f"{home} {number}"),
                operation("append_turn", theme, session_id="s", role="user", content=f"both {number}"),
                operation(
                    "replace_memory",
                    theme,
                    target="memory",
                    old_text=f"{home} {number}",
                    content=f"{home}! {number}",
                ),
                operation("register_agent", theme, attrs={home: number}),
            ]
        return made if home == "one" else made[::-1]

    def send(home: str) -> list[Row]:
        answers: list[Row] = []
        with race.database.runtime() as connection:
            for number in range(ROUNDS):
                call = batch(*operations(home, number))
                barrier.wait(timeout=120)
                while True:
                    try:
                        answers += run(connection, race.theme, *call)
                        break
                    except Retryable:
                        retries[home] += 1
                        assert retries[home] < 20 * ROUNDS
        return answers

    with ThreadPoolExecutor(2) as pool:
        sent = [pool.submit(send, home) for home in ("one", "two")]
        answers = [answer for future in sent for answer in future.result(timeout=300)]

    assert len(answers) == 2 * ROUNDS * len(themes) * 6
    assert [answer for answer in answers if answer["error_code"] is not None] == []
    assert len({answer["op_id"] for answer in answers}) == len(answers)
    with race.database.admin() as connection:
        applied = connection.execute(
            "SELECT count(*) FROM memvec.applied_ops WHERE op_id = ANY (%s)", [[a["op_id"] for a in answers]]
        ).fetchone()
    assert applied == (len(answers),)
    for theme in themes:
        held = Race(race.database, theme)
        both = [f"both {number}" for number in range(ROUNDS)]
        own = [f"{home} {number}" for home in ("one", "two") for number in range(ROUNDS)]
        assert sorted(held.turns()) == sorted(both + own)
        # Home two sends its edit before the note: the edit adds the new text, then the note comes as well.
        edited = [f"{home}! {number}" for home in ("one", "two") for number in range(ROUNDS)]
        late = [f"two {number}" for number in range(ROUNDS)]
        assert held.notes() == sorted(both + edited + late)
        assert sorted(held.history()) == sorted(f"one {number}" for number in range(ROUNDS))


def test_a_deadlock_sends_a_whole_batch_back(race: Race) -> None:
    """Turns are not locked beforehand, so two batches with texts in common can be made to run into each
    other: both wait for a third session, and when that gives up each holds what the other wants."""

    def said(*texts: str) -> list[Row]:
        return [operation("append_turn", race.theme, session_id="s", role="user", content=t) for t in texts]

    batches = [said("only one", "a", "gate", "b"), said("b", "gate", "a", "only two")]
    with (
        psycopg.connect(race.database.runtime_dsn) as third,
        race.database.runtime() as one,
        race.database.runtime() as two,
        ThreadPoolExecutor(2) as pool,
    ):
        run(third, race.theme, *turn("gate"))
        sent: list[Future[list[Row]]] = []
        for connection, operations in zip([one, two], batches, strict=True):
            sent.append(pool.submit(run, connection, race.theme, *batch(*operations)))
            assert waits_for(race.database, connection.info.backend_pid, third.info.backend_pid, sent[-1])
        third.rollback()
        errors = [future.exception(timeout=180) for future in sent]

    (loser,) = [index for index, error in enumerate(errors) if error is not None]
    assert isinstance(errors[loser], psycopg.errors.DeadlockDetected)
    winner = sent[1 - loser].result()
    assert [answer["outcome"] for answer in winner] == ["added"] * 4
    assert sorted(race.turns()) == sorted(["a", "b", "gate", ["only one", "only two"][1 - loser]])

    with race.database.runtime() as connection:
        again = run(connection, race.theme, *batch(*batches[loser]))
    assert Counter(answer["outcome"] for answer in again) == {"duplicate": 3, "added": 1}
    assert sorted(race.turns()) == ["a", "b", "gate", "only one", "only two"]


def hello(model: str, dim: int = 8) -> Call:
    return ("hello", THEME, model, dim)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_first_space_twice_at_once(unused: Database, end: Literal["commit", "rollback"]) -> None:
    one, two = one_after_the_other(Race(unused, "hello"), hello("model"), hello("model"), end)
    assert two["space_id"] is not None
    assert two["warnings"] == []
    assert (one["space_id"] == two["space_id"]) == (end == "commit")
    assert spaces(unused) == [("model", 8)]


def test_two_first_models_at_once(unused: Database) -> None:
    """Only one of them is the first; the other is told so and works without vectors."""
    first = Race(unused, "hello")
    one, two = one_after_the_other(first, hello("model"), ("hello", "hello-2", "other", 8))
    assert one["space_id"] is not None
    assert two["space_id"] is None
    assert len(two["warnings"]) == 1
    assert spaces(unused) == [("model", 8)]


def test_the_second_first_model_after_the_first_gave_up(unused: Database) -> None:
    _, two = one_after_the_other(
        Race(unused, "hello"), hello("model"), ("hello", "hello-2", "other", 8), "rollback"
    )
    assert two["space_id"] is not None
    assert spaces(unused) == [("other", 8)]


def test_adding_one_space_twice_at_once(unused: Database) -> None:
    _, dsn = unused.make_login("memvec_admin")
    call = ("add_embedding_space", "model", 8)
    one, two = one_after_the_other(Race(unused, "hello"), call, call, dsn=dsn)
    assert one == two
    assert spaces(unused) == [("model", 8)]


def test_a_write_waits_for_a_space_in_the_making(unused: Database) -> None:
    """The tables of a space refer to the rows, so a writer waits for them, and then goes on."""
    race = Race(unused, "hello")
    one, two = one_after_the_other(race, hello("model"), add("a"))
    assert one["space_id"] is not None
    assert two["outcome"] == "added"
    assert race.notes() == ["a"]


def test_a_vector_of_the_old_text_does_not_stay_on_the_new_one(unused: Database) -> None:
    """A vector arrives while its note is being replaced: before the replace has the row, after it began."""
    race = Race(unused, "vectors")
    space = race.write("hello", THEME, "model", 2)["space_id"]
    note = race.write(*add("old"))
    with (
        psycopg.connect(unused.admin_dsn) as holder,
        unused.runtime() as one,
        unused.runtime() as two,
        ThreadPoolExecutor(1) as pool,
    ):
        holder.execute("SELECT FROM memvec.memory_entries WHERE id = %s FOR KEY SHARE", [note["id"]])
        replaced = pool.submit(run, one, race.theme, *replace("old", "new"))
        assert waits_for(unused, one.info.backend_pid, holder.info.backend_pid, replaced)
        two.execute(
            "SELECT memvec.store_embeddings(%s, '{entry}', %s, %s, ARRAY['[1,0]']::public.halfvec[])",
            [space, [note["id"]], [note["content_hash"]]],
        )
        two.commit()
        holder.rollback()
        assert replaced.result(timeout=180)[0]["outcome"] == "replaced"
        one.commit()
    assert race.notes() == ["new"]
    with unused.runtime() as connection:
        by_meaning = connection.execute(
            "SELECT id FROM memvec.recall_memory(%s, NULL, '[1,0]'::public.halfvec, %s)", [race.theme, space]
        )
        assert by_meaning.fetchall() == []


def spaces(database: Database) -> list[tuple[str, int]]:
    with database.admin() as connection:
        rows = connection.execute("SELECT model, dim FROM memvec.embedding_spaces ORDER BY id")
        return [(str(model), int(dim)) for model, dim in rows]
