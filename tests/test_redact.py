"""What counts as a secret, what does not, and that masking is stable."""

from __future__ import annotations

import pytest

from hermes_pgsql.redact import MASK, redact

# Made at run time, so that no scanner takes this file for a leak.
KEY = "sk-" + "proj-" + "abcdefghijklmnopqrst0123"
GITHUB = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
WEB_TOKEN = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0In0" + ".c2lnbmF0dXJl-x_1"
PRIVATE = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE " + "KEY-----"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://bob:p@ss:w0rd@db/x and more", f"postgresql://bob:{MASK}@db/x and more"),
        ("redis://:pw@h:1/0", f"redis://:{MASK}@h:1/0"),
        ("password = x", f"password = {MASK}"),
        ("DB_PASSWORD='a b c' psql", f"DB_PASSWORD='{MASK}' psql"),
        ("PGPASSWORD=hunter2 psql -h db", f"PGPASSWORD={MASK} psql -h db"),
        ('{"password": "correct horse", "user": "x"}', f'{{"password": "{MASK}", "user": "x"}}'),
        ("password: correct-horse\nuser: x", f"password: {MASK}\nuser: x"),
        ("the secret api key is hunter2.", f"the secret api key is {MASK}."),
        ("my card pin is 9911", f"my card pin is {MASK}"),
        ("Das Passwort lautet Sommer2026!", f"Das Passwort lautet {MASK}!"),
        ("--password s3cretpw --user x", f"--password {MASK} --user x"),
        ("curl -s -u bob:s3cret https://x/y", f"curl -s -u bob:{MASK} https://x/y"),
        ("mysqldump -u root -phunter2 shop", f"mysqldump -u root -p{MASK} shop"),
        ("sshpass -p hunter2 ssh host", f"sshpass -p {MASK} ssh host"),
        ("ALTER ROLE x PASSWORD 'abc'", f"ALTER ROLE x PASSWORD '{MASK}'"),
        ("AccountName=x;AccountKey=abc/d+e==;More=y", f"AccountName=x;AccountKey={MASK};More=y"),
        ("Endpoint=x;SharedAccessKey=abc/d+e=", f"Endpoint=x;SharedAccessKey={MASK}"),
        (f"use {KEY} for it", f"use {MASK} for it"),
        (f"export GITHUB_TOKEN={GITHUB}", f"export GITHUB_TOKEN={MASK}"),
        (f"cookie jar {WEB_TOKEN}", f"cookie jar {MASK}"),
        ("AKIA" + "ABCDEFGHIJKLMNOP in the log", f"{MASK} in the log"),
        ("Authorization: Bearer abc.def-ghi12345678", f"Authorization: Bearer {MASK}"),
        ("send bearer abcdefghijklmnop123", f"send bearer {MASK}"),
        (f"key:\n{PRIVATE}\nafter", f"key:\n{MASK}\nafter"),
        ("bot 123456789:AA" + "abcdefghijklmnopqrstuvwxyz1234567", f"bot {MASK}"),
    ],
)
def test_secrets_are_masked(text: str, expected: str) -> None:
    assert redact(text) == (expected, 1)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=200, tokens: 55, compass=north, monkey=5",
        "the token is invalid and the password is required",
        "password: the usual one, ask Ada",
        "password=${DB_PASSWORD} token=$TOKEN api_key=os.environ['KEY'] secret=<your secret>",
        "pwd=/home/x; the public key is in ~/.ssh/id_ed25519.pub",
        "secret: Santa gift is a bike",
        "mail bob@example.com at 10:30, or git@github.com:me/x.git",
        "see https://host:8080/path@2 and https://github.com/o/r@main and http://a.b/c:d@e",
        "basic arithmetic, bearer of good news",
        "sk-learn, hf_hub, key-value, eyJust, AKIA",
        "a task-based sk-short run",
        "mysql -p shop; curl -u $USER:$PASS x, curl -o file:name.txt x",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_everything_is_counted_and_a_second_pass_finds_nothing() -> None:
    text = (
        f"db://u:pw@h password=x {KEY} {GITHUB}\n{PRIVATE}\n"
        "Authorization: Basic dXNlcjpwYXNz\ntoken: abcdef123456"
    )
    once, count = redact(text)
    assert count == 7
    assert redact(once) == (once, 0)
    for secret in ("pw@", KEY, GITHUB, "MIIE", "dXNl", "abcdef"):
        assert secret not in once


def test_a_private_key_that_was_cut_off_is_masked_to_its_end() -> None:
    cut = PRIVATE.split("IBAAKC")[0]
    assert redact(f"log: {cut}") == (f"log: {MASK}", 1)
    two, count = redact(f"{PRIVATE}\nbetween\n{PRIVATE}")
    assert (two, count) == (f"{MASK}\nbetween\n{MASK}", 2)


@pytest.mark.parametrize(
    "piece",
    [
        "password ",
        "password: '",
        "a://",
        "http://u:",
        "sk-",
        "-----BEGIN PRIVATE " + "KEY-----",
        "eyJaaaaaaaa",
        "token is ",
        "--pass-",
        "curl -u a",
        "mysql -p",
    ],
)
def test_long_text_of_beginnings_ends(piece: str) -> None:
    """Each of these once made a pattern slow; a run that does not end fails by the suite's own limit."""
    text = piece * (200_000 // len(piece))
    assert redact(text)[0]
