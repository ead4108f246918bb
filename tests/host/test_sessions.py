"""Whole sessions of the host with a scripted model: what is stored, and what the model is told."""

from __future__ import annotations

import zipfile
from pathlib import Path

from host_home import Home, wait_for
from model_server import ModelServer, calls, says

QUESTION = "Which port does the staging database of project Falcon listen on these days?"
ANSWER = "The staging database of project Falcon listens on port 6432, behind the pooler."


def test_what_one_run_saves_the_next_one_is_told(home: Home, model: ModelServer) -> None:
    model.script(
        calls("memory", action="add", target="memory", content="  Falcon staging database: port 6432.  "),
        says(ANSWER),
    )
    home.ask(QUESTION)
    assert home.entries() == [("hermes", "memory", "Falcon staging database: port 6432.")]
    assert [turn[1:] for turn in home.turns()] == [("user", QUESTION), ("assistant", ANSWER)]

    model.script(says("Port 6432, as noted before, and nothing has changed since then."))
    home.ask("Remind me: what was the port of the Falcon staging database again?")
    told = model.chats()[0][-1]["content"]
    assert "<memory-context>" in told
    assert "port 6432, behind the pooler" in told
    assert {"recall_memory", "recall_conversation"} <= set(model.offered())
    assert "Long-term memory (pgvector)" in model.chats()[0][0]["content"]


def test_every_row_gets_its_vector_also_that_of_the_last_turn(home: Home, model: ModelServer) -> None:
    model.script(says(ANSWER))
    home.ask(QUESTION)
    model.script(says("Nothing new to report about anything at all today, I am afraid."))
    home.ask("Is there anything else that is new in this long and quiet day of ours?")
    # What the second run left over, the next one that has the time completes.
    missing = "SELECT pending FROM memvec.embedding_coverage() WHERE kind = 'turn'"
    for _more in range(5):
        model.script(says("Hi."))
        home.ask("Hi there")
        if len(home.turns()) == 4 and home.query(missing) == [(0,)]:
            break
    assert len(home.turns()) == 4
    assert home.query(missing) == [(0,)]


def test_tools_of_the_model_find_notes_and_turns(home: Home, model: ModelServer) -> None:
    model.script(calls("memory", action="add", target="user", content="Ada prefers tea."), says(ANSWER))
    home.ask(QUESTION)
    model.script(
        calls("recall_memory", query="what does Ada drink, tea or coffee"),
        calls("recall_conversation", query="Falcon port", limit="2"),
        says("Tea, and port 6432."),
    )
    home.ask("Please look up what Ada drinks and the port of Falcon for me.")
    notes, turns = [message["content"] for message in model.chats()[-1] if message["role"] == "tool"]
    assert "Ada prefers tea." in notes
    assert "6432" in turns


def test_a_resumed_session_stores_each_turn_once(home: Home, model: ModelServer) -> None:
    for number in range(3):
        model.script(says(f"Answer number {number} about the long story of the lighthouse keeper."))
        options = ["--continue"] if number else []
        home.chat(f"Question number {number} about the long story of the lighthouse keeper.", *options)
    assert len(home.turns()) == 6
    assert len({session for session, _role, _text in home.turns()}) == 1


def test_commands_of_an_interactive_session(home: Home, model: ModelServer) -> None:
    stories = [
        f"A long enough sentence about the {animal} in the garden." for animal in ("fox", "owl", "bee", "elk")
    ]
    replies = [
        f"A long enough reply about the {animal} in the garden." for animal in ("fox", "owl", "bee", "elk")
    ]
    model.script(*map(says, replies))
    home.interactive(
        stories[0], "/branch aside", stories[1], "/undo", "1", stories[2], "/new", "1", stories[3]
    )
    by_session: dict[str, list[str]] = {}
    for session, _role, text in home.turns():
        by_session.setdefault(session, []).append(text)
    assert sorted(home.said()) == sorted(stories + replies)
    assert list(by_session.values()) == [
        [stories[0], replies[0]],
        [stories[1], replies[1], stories[2], replies[2]],
        [stories[3], replies[3]],
    ]


def test_what_was_just_said_is_not_recalled(home: Home, model: ModelServer) -> None:
    bike = "My new bike is a green gravel bike with a very comfortable saddle."
    model.script(says("Nice, a green gravel bike with a comfortable saddle it is."), says("It is green."))
    home.interactive(bike, "What colour is my new bike and how is its saddle?")
    first = model.chats()[-1][-1]["content"]
    assert "memory-context" not in first
    model.script(says("Green."))
    home.ask("What colour is my new bike and how is its saddle?")
    assert "green gravel bike" in model.chats()[-1][-1]["content"]


def test_compression_leaves_one_row_for_each_turn(home: Home, model: ModelServer) -> None:
    lines = [f"Sentence number {number} about the history of the canal, long enough." for number in range(6)]
    replies = [f"Reply number {number} about the history of the canal, long enough." for number in range(6)]
    model.script(*map(says, replies))
    home.interactive(*lines[:5], "/compress", lines[5])
    assert sorted(home.said()) == sorted(lines + replies)


def test_notes_written_behind_the_providers_back_arrive(home: Home, model: ModelServer) -> None:
    memories = home.path / "memories"
    memories.mkdir(exist_ok=True)
    (memories / "MEMORY.md").write_text(
        "By hand: the key is under the mat.\n§\nSecond note.\n", encoding="utf-8"
    )
    model.script(says("Noted."))
    home.ask("Hello")
    assert [text for _theme, _target, text in home.entries()] == [
        "By hand: the key is under the mat.",
        "Second note.",
    ]
    (memories / "MEMORY.md").write_text("Second note.\n", encoding="utf-8")
    model.script(says("Noted."))
    home.ask("Hello")
    assert home.entries() == [("hermes", "memory", "Second note.")]
    home.run("hermes", "memory", "reset", "--yes")
    model.script(says("Noted."))
    home.ask("Hello")
    assert home.entries() == []


def test_delegation_is_recorded(home: Home, model: ModelServer) -> None:
    model.script(
        calls("delegate_task", goal="Count the swans on the lake behind the old mill."),
        says("There are nineteen swans on the lake behind the old mill."),
        says("The helper counted nineteen swans on the lake, all of them white."),
    )
    home.ask("Have a helper count the swans on the lake behind the old mill, please.")
    home.deliver()
    edges = home.query("SELECT attrs ->> 'task' FROM memvec.memory_agent_edges")
    assert [task for (task,) in edges] == ["Count the swans on the lake behind the old mill."]
    delegated = [text for text in home.said() if text.startswith("[delegation]")]
    assert len(delegated) == 1
    assert "nineteen swans" in delegated[0]


def test_status_and_switching_off(home: Home) -> None:
    status = home.run("hermes", "memory", "status").stdout
    assert "available ✓" in status
    assert "outbox" in status


def test_secrets_are_masked(home: Home, model: ModelServer) -> None:
    model.script(
        calls(
            "memory",
            action="add",
            target="memory",
            content="Falcon API: token=ghp_0123456789abcdefghijABCDEFGHIJ01.",
        ),
        says("I have noted the address postgresql://falcon:hunter2@db/falcon for the project."),
    )
    home.ask("Please remember the database address of project Falcon and its password.")
    stored = " ".join([text for _t, _g, text in home.entries()] + home.said())
    assert "hunter2" not in stored
    assert "ghp_" not in stored
    assert stored.count("[redacted]") == 2


def test_api_server_keeps_themes_apart_and_connections_few(home: Home, model: ModelServer) -> None:
    threads: list[int] = []
    with home.gateway("k" * 40) as ask:
        for number in range(8):
            model.script(says(f"Reply {number}: the campaign of the marketing team starts in week {number}."))
            ask(f"Question {number}: when does the campaign of the marketing team start?", "Marketing")
            threads.append(len(list(Path(f"/proc/{ask.process.pid}/task").iterdir())))  # type: ignore[attr-defined]
        model.script(says("I have noted what you told me about your holiday on the island."))
        ask("I told you about my secret holiday on the island of Elba.", "agent:main:whatsapp:dm:15550100123")
        model.script(says("I know nothing about any holiday of anybody, sorry about that."))
        ask(
            "What do you know about a secret holiday on the island of Elba?",
            "agent:main:whatsapp:dm:15550100999",
        )
        assert "memory-context" not in model.chats()[-1][-1]["content"]
        wait_for(lambda: len(home.turns()) == 20)
        connections = home.query(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'hermes'"
        )
        assert connections[0][0] <= 4
        # The host makes a provider for each request and never ends one. (It has a few threads of its own.)
        assert threads[-1] <= threads[0] + 6
    themes = home.query("SELECT agent_identity, count(*) FROM memvec.conversations GROUP BY 1 ORDER BY 1")
    assert themes == [("marketing", 16), ("whatsapp-dm", 4)]
    assert "15550100" not in str(home.query("SELECT agent_identity, attrs::text FROM memvec.memory_agents"))


def test_database_down_at_start_loses_nothing(home: Home, model: ModelServer) -> None:
    home.configure(settings={"dsn": home.dsn + " port=1"})
    model.script(
        calls("memory", action="add", target="memory", content="Written while the database was away."),
        says("This answer was given while the database was away for the day."),
    )
    home.ask("This question was asked while the database was away for the day.")
    assert home.query("SELECT FROM memvec.conversations") == []
    home.configure()
    model.script(says("Hi."))
    home.ask("Hi")
    assert [text for _theme, _target, text in home.entries()] == ["Written while the database was away."]
    assert len(home.turns()) == 2


def test_a_note_of_the_background_review_arrives(home: Home, model: ModelServer) -> None:
    """The host reviews a conversation in a copy of the agent that has no memory provider."""
    home.configure("", None)
    config = home.path / "config.yaml"
    config.write_text(config.read_text().replace("memory:\n", "memory:\n  nudge_interval: 1\n"))
    model.script(
        says("The lighthouse keeper was born on the island in the year of the storm."),
        calls(
            "memory", action="add", target="memory", content="Found in review: the keeper is from the island."
        ),
        says("Reviewed."),
    )
    home.interactive("Where was the lighthouse keeper of the old story born, do you know?")
    assert "Found in review" in home.note()
    model.script(says("Hello."))
    home.ask("Hello")
    assert [text for _theme, _target, text in home.entries()] == [
        "Found in review: the keeper is from the island."
    ]


def test_going_back_to_an_earlier_session(home: Home, model: ModelServer) -> None:
    first = "The first session is about the tall ships in the harbour of the town."
    second = "The second session is about the small boats on the river of the town."
    third = "And again about the tall ships: how many masts do they have in all?"
    replies = [f"A long enough reply number {number} about the ships and the boats." for number in range(3)]
    model.script(says(replies[0]))
    home.chat(first)
    ((earlier, *_),) = {turn[:1] for turn in home.turns()}
    model.script(says(replies[1]), says(replies[2]))
    home.interactive(second, f"/resume {earlier}", third)
    by_session: dict[str, list[str]] = {}
    for session, _role, text in home.turns():
        by_session.setdefault(session, []).append(text)
    assert list(by_session.values()) == [[first, replies[0], third, replies[2]], [second, replies[1]]]


def test_setup_without_a_terminal_changes_nothing(home: Home) -> None:
    before = (home.path / "config.yaml").read_text()
    said = home.run("hermes", "memory", "setup", "pgvector").stdout
    assert "Nothing was changed" in said
    assert (home.path / "config.yaml").read_text() == before


def test_a_backup_has_the_home_and_no_complaint(home: Home, model: ModelServer) -> None:
    model.script(says(ANSWER))
    home.ask(QUESTION)
    done = home.run("hermes", "backup", "-o", str(home.path.parent / "backup.zip"))
    assert "pgvector" not in done.stderr

    names = zipfile.ZipFile(home.path.parent / "backup.zip").namelist()
    assert any(name.endswith("hermes-pgsql/source.json") for name in names)
