"""hermes-pgsql in a minute: run ``make demo`` and read along.

A fleet of agents keeps its notes and conversations in one PostgreSQL database and asks them questions. Each
section of the output is one function below, in the same order, and each uses what your own code would use:
``Memvec`` (a method for every function of the database) and an embedder. Every answer is checked; a wrong one
is shown with what was expected, and the program ends with 1.

The server is the demo's own: made in a temporary folder, stopped and removed at the end. Your memory is not
touched, nothing is downloaded, and no port is opened.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import NoReturn
from uuid import uuid4

from psycopg.conninfo import make_conninfo
from rich.console import Console

from hermes_pgsql import embedded
from hermes_pgsql.client import Memvec
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.embedding import Embedder, Embedding, EmbeddingFailure, choose_embedder
from hermes_pgsql.errors import HermesPgsqlError, ScopeRefused
from hermes_pgsql.migrate import migrate
from hermes_pgsql.results import Prefetched, RecalledEntry, RecalledTurn

PREFIX = "hermes-pgsql-demo-"
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Notes: what an agent writes with the host's `memory` tool.
NEWSLETTER = "The newsletter goes out on Tuesdays at 09:00; on Fridays half as many opened it."
BUDGET = "The spring campaign may cost 40,000 euros at most; Dana signs every invoice above 5,000."
LAUNCH = "上海新品发布会定于六月十二日举行，媒体邀请名单由王敏负责。"
OFFICE = "The Lisbon office is closed in August; urgent post goes to Porto."
RENEWAL = "Acme Corp renews in October; they want 15 percent off for signing three years."
CERTIFICATE = "ERR_TLS_CERT_EXPIRED at the payment gateway: run `certctl renew pay`."
REPLICA = "pg-replica-07.fra1.example.net falls behind at 02:00 every night, because of the export job."
CHECKOUT = "When the checkout is slow, look at Redis first: it was short of memory the last two times."
ANAS_ORDER = "Ana's order 58213 arrived broken; she wants a new lamp, not the money."
BENS_ADDRESS = "Ben moved: deliver to Harbour Street 9, and ring twice."
BENCH_NOTE = "The newsletter goes out on Sundays at midnight. (Made up by a benchmark.)"

# Who writes is named by a session key, as the host gives it. An agent's is its name; a chat's holds a number.
ANA = "agent:main:whatsapp:dm:15550100123@s.whatsapp.net"
BEN = "agent:main:whatsapp:dm:15550100456@s.whatsapp.net"
NAMES = {ANA: "Ana's chat", BEN: "Ben's chat"}

NOTES = [
    ("marketing", NEWSLETTER),
    ("marketing", BUDGET),
    ("marketing", LAUNCH),
    ("marketing", OFFICE),
    ("sales", RENEWAL),
    ("sales", OFFICE),
    ("sre-worker", CERTIFICATE),
    ("sre-worker", REPLICA),
    ("sre-worker", CHECKOUT),
    (ANA, ANAS_ORDER),
    (BEN, BENS_ADDRESS),
    ("skill-bench", BENCH_NOTE),
]

# Turns: what was said, with the session it was said in.
ROLLBACK = "checkout-api 4.18.2 was rolled back at 14:05: its migration waited for a lock on orders."
TURNS = [
    ("sre-worker", "deploy-1", "user", "Please watch the release of the checkout this afternoon."),
    ("sre-worker", "deploy-1", "assistant", ROLLBACK),
    ("marketing", "mail-1", "user", "Which subject line worked best in March?"),
    ("marketing", "mail-1", "assistant", "The one with the reader's first name: 31 percent opened it."),
]

# Who asks, what, and the note that must come back first.
BY_WORDS = [
    ("sre-worker", "what do I do about ERR_TLS_CERT_EXPIRED?", CERTIFICATE),
    ("sre-worker", "is anything known about pg-replica-07?", REPLICA),
    ("marketing", "新产品什么时候发布？", LAUNCH),
]
BY_MEANING = [
    ("marketing", "which weekday is best for our mailing?", NEWSLETTER),
    ("sre-worker", "the shop takes forever to take an order", CHECKOUT),
    ("marketing", "Wie viel Geld dürfen wir im Frühjahr ausgeben?", BUDGET),
    ("sre-worker", "哪台服务器每晚都会延迟？", REPLICA),
]


@dataclass
class Screen:
    """Prints, in colour on a terminal only, and counts the answers that were right and wrong."""

    right: int = 0
    wrong: int = 0
    console: Console = field(default_factory=lambda: Console(highlight=False, markup=False, emoji=False))

    def section(self, title: str) -> None:
        self.console.print(f"\n{title}", style="bold cyan", soft_wrap=True)

    def say(self, text: str, style: str | None = None) -> None:
        self.console.print(f"  {text}", style=style, soft_wrap=True)

    def check(self, claim: str, expected: object, got: object) -> None:
        """Print the claim, and whether it holds."""
        if got == expected:
            self.right += 1
            self.console.print("  ok  ", style="green", end="")
            self.console.print(claim, soft_wrap=True)
            return
        self.wrong += 1
        self.say(f"WRONG  {claim}", "bold red")
        self.say(f"       expected: {expected}", "red")
        self.say(f"       got:      {got}", "red")


@dataclass(frozen=True)
class Demo:
    """What a client has at hand: the database, and, where one can run, a model and the id of its space."""

    screen: Screen
    server: EmbeddedServer
    memvec: Memvec
    embedder: Embedder | None
    space: int | None

    def recall(
        self, identity: str, question: str, scope: str = "own", limit: int = 10
    ) -> list[RecalledEntry]:
        """The notes that bear on a question, by meaning (if there is a model) and by words at once."""
        vector = self.vector(question)
        return self.memvec.recall_memory(
            identity, question, embedding=vector, space=self.space, scope=scope, limit=limit
        )

    def vector(self, question: str) -> Embedding | None:
        """The vector to search with; without a model there is none, and words do it alone."""
        return self.embedder.embed_query(question) if self.embedder else None

    def embed(
        self, kinds: Sequence[str], ids: Sequence[int], hashes: Sequence[bytes], texts: Sequence[str]
    ) -> int:
        """Give rows their vectors; how many were stored. A vector lands only on the text it was made from."""
        if self.embedder is None or self.space is None:
            return 0
        made = self.embedder.embed_documents(texts)
        vectors = [None if isinstance(vector, EmbeddingFailure) else vector for vector in made]
        return self.memvec.store_embeddings(self.space, kinds, ids, hashes, vectors).stored


def prepare(screen: Screen, folder: Path) -> Demo:
    screen.section("1. A database from nothing")
    began = time.monotonic()
    server = embedded.up(folder)
    report = migrate(server.admin_dsn)
    screen.say(f"PostgreSQL with pgvector was made in {folder}, for this demo only.")
    screen.say(
        f"migrate: schema version {report.schema_version}, {report.functions} functions,"
        f" in {time.monotonic() - began:.1f} s. The agents' login owns nothing and reads no table."
    )
    memvec = Memvec(server.runtime_dsn)
    choice = choose_embedder()
    embedder = choice.embedder
    if embedder is None:
        screen.say(f"Questions by meaning are left out: {choice.reason}.", "yellow")
        return Demo(screen, server, memvec, None, None)
    hello = memvec.hello(
        "marketing",
        embedder.model,
        embedder.dim,
        embedder.query_prefix,
        embedder.document_prefix,
        embedder.min_similarity,
    )
    screen.say(f"Vectors come from {embedder.endpoint} ({embedder.model}); nothing leaves this machine.")
    return Demo(screen, server, memvec, embedder, hello.space_id)


def write(demo: Demo) -> None:
    demo.screen.section("2. Three agents, two people's chats and a benchmark write")
    demo.screen.say(f"{'writer':<12}{'theme':<13}notes")
    for who in dict.fromkeys(who for who, _ in NOTES):
        theme = demo.memvec.canonical_identity(who).agent_identity
        texts = [text for writer, text in NOTES if writer == who]
        demo.screen.say(f"{NAMES.get(who, who):<12}{theme:<13}{len(texts)}, such as: {texts[0]}")

    # Text first: one round trip for everything. Each operation is done once, however often it is sent.
    notes = [
        {"op_id": str(uuid4()), "op": "add_memory", "identity": who, "target": "memory", "content": text}
        for who, text in NOTES
    ]
    turns = [
        {
            "op_id": str(uuid4()),
            "op": "append_turn",
            "identity": who,
            "session_id": session,
            "role": role,
            "content": text,
        }
        for who, session, role, text in TURNS
    ]
    results = demo.memvec.apply_ops([*notes, *turns])
    demo.screen.check(
        f"{len(notes)} notes and {len(turns)} turns of conversations are stored",
        ["added"] * len(results),
        [result.outcome for result in results],
    )
    again = demo.memvec.apply_ops([*notes, *turns])
    demo.screen.check(
        "sent again, as after a lost connection: nothing is stored twice",
        [result.id for result in results],
        [result.id for result in again],
    )
    if demo.embedder is None:
        return
    # Vectors later: whoever has the texts makes them, and names each row by its id and the hash of its text.
    stored = demo.embed(
        ["entry"] * len(notes) + ["turn"] * len(turns),
        [result.id or 0 for result in results],
        [result.content_hash or b"" for result in results],
        [text for _, text in NOTES] + [text for _, _, _, text in TURNS],
    )
    demo.screen.check("each of them got its vector", len(results), stored)


def ask(demo: Demo) -> None:
    demo.screen.section("3. They ask in their own words")
    for who, question, expected in BY_WORDS + (BY_MEANING if demo.embedder else []):
        demo.screen.say(f"{who} asks: {question}", "bold")
        rows = demo.recall(who, question)
        demo.screen.check(f"{first(rows)} {how(rows)}", expected, first(rows))
    if demo.embedder:
        question = "why was the new version of the shop taken back?"
        demo.screen.say(f"sre-worker asks its conversations: {question}", "bold")
        turns = demo.memvec.recall_conversation(
            "sre-worker", question, embedding=demo.vector(question), space=demo.space
        )
        demo.screen.check(f"{first(turns)}", ROLLBACK, first(turns))

    # Before a model answers, the host asks with the user's message. What is not relevant stays out.
    message = "pg-replica-07 is behind again, should I worry?"
    demo.screen.say(f'before sre-worker answers "{message}", the host looks up:', "bold")
    known = demo.memvec.prefetch("sre-worker", message, embedding=demo.vector(message), space=demo.space)
    demo.screen.check(f"{first(known)}", REPLICA, first(known))
    message = "can you write a birthday poem for my sister?"
    known = demo.memvec.prefetch("sre-worker", message, embedding=demo.vector(message), space=demo.space)
    demo.screen.check(f'and for "{message}": nothing', [], known)


def first(rows: Sequence[RecalledEntry] | Sequence[RecalledTurn] | Sequence[Prefetched]) -> str | None:
    """The text of the best answer."""
    return rows[0].content if rows else None


def how(rows: Sequence[RecalledEntry]) -> str:
    """How the best answer was found."""
    ways = ["by words"] if rows and rows[0].text_rank else []
    ways += [f"by meaning {rows[0].score:.2f}"] if rows and rows[0].score else []
    return f"[{', '.join(ways)}]"


def share(demo: Demo) -> None:
    demo.screen.section("4. Agents may read each other's notes; chats and benchmarks stay apart")
    question = "how much may the spring campaign cost?"
    demo.screen.say(f"sales asks everybody (scope=all): {question}", "bold")
    rows = demo.recall("sales", question, scope="all")
    demo.screen.check(f"{first(rows)} [from {rows[0].agent_identity if rows else None}]", BUDGET, first(rows))

    question = "Lisbon, Ana, Ben, lamp, harbour, newsletter"
    demo.screen.say(f"sre-worker asks everybody for 100 rows about: {question}", "bold")
    rows = demo.recall("sre-worker", question, scope="all", limit=100)
    themes = sorted({theme for row in rows for theme in row.themes})
    private = {text for who, text in NOTES if who in {ANA, BEN, "skill-bench"}}
    demo.screen.check(
        f"{len(rows)} rows, from {', '.join(themes)}: none from a chat or a benchmark",
        set[str](),
        private & {row.content for row in rows},
    )
    demo.screen.check(
        "what marketing and sales both wrote comes back once, with both names",
        [["marketing", "sales"]],
        [row.themes for row in rows if row.content == OFFICE],
    )
    demo.screen.say("marketing asks the chats by name (scope=whatsapp-dm): lamp", "bold")
    answer = "it got an answer"
    try:
        demo.recall("marketing", "lamp", scope="whatsapp-dm")
    except ScopeRefused as error:
        answer = f"refused: {error.message}"
    demo.screen.check(answer, "refused", answer.partition(":")[0])

    question = "order 58213, lamp, harbour, newsletter"
    demo.screen.say(f"in Ana's chat, in Ben's chat and in the benchmark: {question}", "bold")
    for who, own in ((ANA, ANAS_ORDER), (BEN, BENS_ADDRESS), ("skill-bench", BENCH_NOTE)):
        found = [row.content for row in demo.recall(who, question, limit=100)]
        demo.screen.check(f"{NAMES.get(who, who):<12}sees only: {own}", [own], found)


def survive(demo: Demo) -> None:
    demo.screen.section("5. The embedding service is down")
    note = "Nightly backups are in s3://acme-pgdump; a restore takes 40 minutes, and Ines has the key."
    with closed_port() as port:
        url = f"http://127.0.0.1:{port}/v1"
        service = choose_embedder(embed_url=url, embed_model="nomic-embed-text").embedder
        vector = service.embed_documents([note])[0] if service else None
    answer = vector.kind if isinstance(vector, EmbeddingFailure) else "it answered"
    demo.screen.check(f"asked for a vector, {url} is {answer}", "unreachable", answer)
    written = demo.memvec.add_memory("sre-worker", "memory", note)
    demo.screen.check(f"sre-worker's note is stored without one: {note}", "added", written.outcome)
    question = "who has the key for a restore?"
    demo.screen.say(f"sre-worker asks at once: {question}", "bold")
    rows = demo.recall("sre-worker", question)
    demo.screen.check(f"{first(rows)} {how(rows)}", (note, "[by words]"), (first(rows), how(rows)))
    if demo.space is None:
        return

    # Later: a worker with the right to do this and nothing else. Several of them share the rows.
    embedder_dsn = make_conninfo(demo.server.admin_dsn, options="-c role=memvec_embedder")
    worker = replace(demo, memvec=Memvec(embedder_dsn))
    pending = worker.memvec.claim_pending(demo.space)
    stored = worker.embed(
        [row.kind for row in pending],
        [row.id for row in pending],
        [row.content_hash for row in pending],
        [row.content for row in pending],
    )
    demo.screen.check(
        "a background worker finds the row without a vector and gives it one", (1, 1), (len(pending), stored)
    )
    question = "wie schnell sind unsere Daten nach einem Ausfall wieder da?"
    demo.screen.say(f"sre-worker asks again: {question}", "bold")
    rows = demo.recall("sre-worker", question)
    demo.screen.check(f"{first(rows)} {how(rows)}", (note, True), (first(rows), "by meaning" in how(rows)))


def change(demo: Demo) -> None:
    demo.screen.section("6. Notes change, and turns come twice")
    note = "Since May the newsletter goes out on Thursdays at 10:00."
    vector = demo.embedder.embed_documents([note])[0] if demo.embedder else None
    replaced = demo.memvec.replace_memory(
        "marketing",
        "memory",
        "Tuesdays at 09:00",  # enough of the old text to tell it from the others
        note,
        embedding=None if isinstance(vector, EmbeddingFailure) else vector,
        space=demo.space,
    )
    demo.screen.check(f"marketing replaces its note: {note}", "replaced", replaced.outcome)
    question = "newsletter on Tuesdays, half as many on Fridays"
    demo.screen.say(f"marketing asks with the old words: {question}", "bold")
    rows = demo.recall("marketing", question, limit=100)
    texts = [row.content for row in rows]
    demo.screen.check(
        f"{first(rows)} (the old text is gone)", (note, False), (first(rows), NEWSLETTER in texts)
    )
    turn = "When does the Lisbon office open again?"
    once = demo.memvec.append_turn("sales", "chat-7", "user", turn)
    twice = demo.memvec.append_turn("sales", "chat-7", "user", turn)
    turns = demo.memvec.recall_conversation("sales", "Lisbon office", scope="session", session_id="chat-7")
    demo.screen.check(
        f"sales sends a turn twice ({once.outcome}, {twice.outcome}) and finds it once: {turn}",
        ("added", "duplicate", [turn]),
        (once.outcome, twice.outcome, [row.content for row in turns]),
    )


def administer(demo: Demo) -> None:
    demo.screen.section("7. The same functions from psql")
    done = psql(demo, "SELECT agent_identity, kind, entries, turns, entries_embedded FROM memvec.stats()")
    cells = [[cell.strip() for cell in line.split("|")] for line in done.stdout.strip().splitlines()[2:]]
    demo.screen.check(
        "a row for each theme; both chats are in one, whose name holds nobody's number",
        [["_bench", "1"], ["marketing", "4"], ["sales", "2"], ["sre-worker", "4"], ["whatsapp-dm", "2"]],
        [[row[0], row[2]] for row in cells],
    )
    done = psql(demo, "SELECT content FROM memvec.memory_entries")
    demo.screen.check(
        "the agents' login gets at rows through the functions only",
        "ERROR:  permission denied for table memory_entries",
        done.stderr.strip(),
    )


def psql(demo: Demo, statement: str) -> subprocess.CompletedProcess[str]:
    """Run a statement with psql as the agents' login, and show both it and what came back."""
    demo.screen.say(f'$ psql "$DSN" -c "{statement}"', "bold")
    program = demo.server.bin_dir / "psql"
    done = subprocess.run(
        [program, "-XP", "footer=off", "-d", demo.server.runtime_dsn, "-c", statement],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in (done.stdout + done.stderr).strip("\n").splitlines():
        demo.screen.say(f"  {line}")
    return done


def say_goodbye(screen: Screen, seconds: float) -> None:
    screen.section("Next")
    command = Path(sys.executable).with_name("hermes-pgsql")
    with suppress(ValueError):
        command = command.relative_to(Path.cwd())
    screen.say(f"{command} up      # a server of your own, which stays; says how to reach it with psql")
    screen.say(f'{command} add --as ops "Ines gets the disk alarms."')
    screen.say(f'{command} search --as ops "who is told when a disk fills up?"')
    if screen.wrong:
        screen.say(
            f"{screen.wrong} of {screen.right + screen.wrong} answers were WRONG, see above.", "bold red"
        )
        return
    screen.say(f"All {screen.right} answers were right, in {seconds:.0f} s with start and removal.", "green")


def run(screen: Screen) -> None:
    began = time.monotonic()
    with own_folder() as folder:
        demo = prepare(screen, folder)
        for section in (write, ask, share, survive, change, administer):
            section(demo)
    say_goodbye(screen, time.monotonic() - began)


@contextmanager
def own_folder() -> Generator[Path]:
    """A folder for a server; both are gone afterwards, also after Ctrl-C and `kill`."""
    remove_left_behind()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    try:
        yield folder
    finally:
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        remove(folder)


def remove_left_behind() -> None:
    """Stop and remove what demos of this user left that were killed with `kill -9`."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        with suppress(OSError, HermesPgsqlError):
            if number.isdigit() and folder.lstat().st_uid == os.geteuid() and not is_alive(int(number)):
                remove(folder)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def remove(folder: Path) -> None:
    try:
        embedded.down(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def closed_port() -> Generator[int]:
    """The number of a port of this machine on which nobody listens: bound, so that nobody will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def stop(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def main() -> int:
    """0 when every answer was right, 1 when not or when the demo could not run, 128 + N after signal N."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Some terminals have no Chinese characters.
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportUnknownMemberType]
    screen = Screen()
    for number in STOPPING:
        signal.signal(number, stop)
    # What fails on purpose is shown on the screen; the log has nothing to add.
    logging.getLogger("hermes_pgsql").addHandler(logging.NullHandler())
    try:
        run(screen)
    except SystemExit:
        screen.say("Interrupted; the demo's server is stopped and removed.")
        raise
    except HermesPgsqlError as error:
        screen.say(f"The demo cannot go on: {error}", "bold red")
        return 1
    return 1 if screen.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
