"""Secrets out of text, before it is stored, embedded or compared.

Keys, tokens, passwords in addresses and assignments, bearer headers and private keys become ``[redacted]``;
everything around them stays. The same text always gives the same result, and a redacted text stays as it is,
so that an entry, the file it came from and a pattern that names it still match each other. What is masked is
counted and never logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["MASK", "redact", "redacted_text"]

MASK: Final = "[redacted]"


def redact(text: str) -> tuple[str, int]:
    """``text`` without its secrets, and how many were masked."""
    folded = text.casefold()
    count = 0
    for rule in _RULES:
        if any(hint in folded for hint in rule.hints):
            text, masked = _masked(text, rule)
            count += masked
    return text, count


def redacted_text(text: str) -> str:
    """``text`` without its secrets."""
    return redact(text)[0]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What to look for, and what to put in its place (None: it is no secret).

    ``hints`` are folded pieces of text without which the pattern cannot match; looking for them is cheap.
    """

    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str]], str | None]
    hints: tuple[str, ...]


def _masked(text: str, rule: _Rule) -> tuple[str, int]:
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        replacement = rule.replacement(match)
        if replacement is None:
            return match[0]
        count += 1
        return replacement

    return rule.pattern.sub(replace, text), count


# Patterns ------------------------------------------------------------
# Every repetition has an upper limit, so that no text makes them slow.

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?!-----(?:BEGIN|END) ).){0,20000}"
    r"(?:-----END [A-Z0-9 ]{0,60}-----)?",
    re.DOTALL,
)
# A password may hold anything but a blank or a quote; it ends at the last "@".
_PASSWORD_IN_URL: Final = re.compile(
    r"(?P<head>\b[a-z][a-z0-9+.-]{1,30}://[^\s:/?#@\"'<>]{0,256}:)"
    r"(?P<secret>[^\s\"'<>/][^\s\"'<>]{0,512})(?=@)",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(
    r"(?P<head>\b(?:(?:proxy-)?authorization|x-api-key|x-auth-token|(?:set-)?cookie)\s*[\"']?\s*[:=]\s*[\"']?"
    r"(?:(?:bearer|basic|token|digest|apikey|bot)\s+)?)(?P<secret>[^\s\"',;]{6,4096}[^\s\"',;.])",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(
    r"(?P<head>\b(?:bearer|basic)\s+)(?P<secret>[A-Za-z0-9._~+/=-]{16,4096})", re.IGNORECASE
)
# Forms that say by themselves what they are.
_TOKEN: Final = re.compile(
    r"""(?<![A-Za-z0-9])(?:
        sk-[A-Za-z0-9_-]{16,300}                                # OpenAI, Anthropic, OpenRouter and others
      | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,300} | whsec_[A-Za-z0-9+/=]{16,300}
      | gh[pousr]_[A-Za-z0-9]{20,300} | github_pat_[A-Za-z0-9_]{20,300}
      | gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,300}
      | xox[abeoprs]-[A-Za-z0-9-]{10,300} | xapp-[A-Za-z0-9-]{10,300}
      | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])
      | AIza[A-Za-z0-9_-]{35} | ya29\.[A-Za-z0-9_-]{20,300} | GOCSPX-[A-Za-z0-9_-]{20,300}
      | npm_[A-Za-z0-9]{30,300} | pypi-[A-Za-z0-9_-]{40,300}
      | hf_[A-Za-z0-9]{20,300} | gsk_[A-Za-z0-9]{20,300} | fw_[A-Za-z0-9]{20,300}
      | xai-[A-Za-z0-9_-]{20,300} | nvapi-[A-Za-z0-9_-]{20,300} | tvly-[A-Za-z0-9_-]{16,300}
      | r8_[A-Za-z0-9]{20,300} | pplx-[A-Za-z0-9]{20,300}
      | do[op]_v1_[a-f0-9]{40,300} | dckr_pat_[A-Za-z0-9_-]{20,300} | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,300}
      | SG\.[A-Za-z0-9_-]{16,100}\.[A-Za-z0-9_-]{16,100} | key-[a-f0-9]{32}(?![A-Za-z0-9])
      | hv[sbr]\.[A-Za-z0-9_-]{20,300} | lin_api_[A-Za-z0-9]{20,300} | ntn_[A-Za-z0-9]{20,300}
      | AGE-SECRET-KEY-1[A-Z0-9]{40,100}
      | eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}     # JSON web tokens
      | [0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])        # Telegram bots
      | https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,300}
    )""",
    re.VERBOSE,
)
_NAMES: Final = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|api[-_ ]?key|secret[-_ ]?key"
    r"|(?:account|(?:shared[-_ ]?)?access)[-_ ]?key(?:[-_ ]?id)?"
    r"|private[-_ ]?key|(?:auth|access|refresh|id|session)[-_ ]?token|client[-_ ]?secret|signing[-_ ]?key"
    r"|encryption[-_ ]?key|token|credentials?|passwort|kennwort|contraseña|mot de passe|пароль"
    r"|密码|密碼|パスワード"
)
# password = x, "api_key": "x", export DB_PASSWORD=x, PGPASSWORD=x
_ASSIGNMENT: Final = re.compile(
    rf"(?P<head>(?:(?<![^\W_])|(?-i:(?<=[A-Z]{{2}})(?=PASS)))(?P<name>{_NAMES})[\"'`*_]{{0,3}}\s{{0,4}}"
    r"(?P<sign>:=|=>|=|:|：)\s{0,4}[*_]{0,2})"
    r"(?:(?P<quote>[\"'`])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n]){1,512})(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;)\]}<>]{1,512}))",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(
    rf"(?P<head>(?<!\S)--?(?:[a-z0-9]{{1,30}}-){{0,5}}(?:{_NAMES})\s{{1,4}})"
    r"(?P<secret>[^\s\"'`-][^\s\"'`]{3,512})",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(
    rf"(?P<head>(?<![^\W_])(?:{_NAMES}|pin)\s{{1,4}}(?:is|was|lautet|ist|es|est)\s{{0,4}}:?\s{{1,4}}[\"'`]?)"
    r"(?P<secret>[^\s\"'`,;]{3,512}[^\s\"'`,;.!?])",
    re.IGNORECASE,
)
_STATEMENT: Final = re.compile(
    r"(?P<head>\b(?:identified\s{1,4}by|password)\s{1,4}')(?P<secret>(?:''|[^'\n]){1,512})(?=')",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    r"(?P<head>\b(?:curl|wget)\b[^\n]{0,300}?\s(?:-u|--(?:proxy-)?user)[ =]{0,4}[\"']?[^\s:\"']{1,100}:"
    r"|\b(?:mysql|mariadb)[a-z-]{0,20}\b[^\n]{0,300}?\s-p[\"']?|\bsshpass\s{1,4}-p\s{0,4}[\"']?)"
    r"(?P<secret>[^\s\"'-][^\s\"']{2,512})"
)
# A place where the secret is kept, a word that stands for one, or what we wrote ourselves.
_HARMLESS: Final = re.compile(
    r"\[redacted|\*{3,}|x{3,}$|\.{3}|<|\$\{?[A-Za-z_]|\$\(|%[A-Za-z_]+%|\{\{|\{[A-Za-z_]"
    r"|os\.(?:environ|getenv)|process\.env|env[.:(]|getenv|~?/|\.\.?/"
    r"|(?:none|null|nil|true|false|undefined|required|optional|missing|invalid|expired|empty|unset|string|str"
    r"|text|int|bytes|your[-_ ]?\S*|my[-_ ]?\S*|changeme|example|placeholder|unknown|here|redacted|masked"
    r"|hidden)$",
    re.IGNORECASE,
)
_WEAK_NAMES: Final = frozenset({"token", "pass", "secret", "credential", "credentials"})

# What to put in the place of a match ------------------------------------------------------------


def _whole(match: re.Match[str]) -> str:
    del match
    return MASK


def _in_address(match: re.Match[str]) -> str | None:
    secret = match["secret"]
    if re.match(r"\[redacted|\$\{?[A-Za-z_]|\*{3,}|\{", secret):
        return None
    # A port and a path: the "@" belongs to something behind it.
    return None if re.match(r"\d{1,5}[/?#]", secret) else match["head"] + MASK


def _header(match: re.Match[str]) -> str | None:
    return None if _HARMLESS.match(match["secret"]) else match["head"] + MASK


def _assigned(match: re.Match[str]) -> str | None:
    weak = match["name"].lower() in _WEAK_NAMES
    if match["quoted"] is not None:
        if _HARMLESS.match(match["quoted"]) or (weak and len(match["quoted"]) < 8):
            return None
        return f"{match['head']}{match['quote']}{MASK}{match['quote']}"
    bare = match["bare"]
    secret = bare.rstrip(".!?")
    if not secret or _HARMLESS.match(secret):
        return None
    # "password: the usual one" is prose, "token=3" a number; a line that ends with the value is a setting.
    certain = not weak and (match["sign"] == "=" or _ends_its_line(match))
    if not certain and not _looks_made_up(secret, 8 if weak else 4):
        return None
    return match["head"] + MASK + bare[len(secret) :]


def _ends_its_line(match: re.Match[str]) -> bool:
    return match.end() == len(match.string) or match.string[match.end()] in "\r\n,;"


def _in_prose(match: re.Match[str]) -> str | None:
    secret = match["secret"]
    return match["head"] + MASK if not _HARMLESS.match(secret) and _looks_made_up(secret, 4) else None


def _looks_made_up(secret: str, least: int) -> bool:
    """Whether it is no ordinary word: long enough, with a digit, or with letters and signs mixed."""
    if len(secret) < least:
        return False
    if any(ch.isdigit() for ch in secret):
        return True
    if any(not ch.isalnum() and ch not in "-_/.'’" for ch in secret[1:-1]):
        return any(ch.isalpha() for ch in secret)
    return any(ch.isupper() for ch in secret[1:]) and any(ch.islower() for ch in secret)


_NAME_HINTS: Final = (
    *("pass", "pwd", "secret", "key", "token", "credential", "kennwort", "contraseña", "mot de passe"),
    *("пароль", "密", "パスワード"),
)
_TOKEN_HINTS: Final = (
    *("sk-", "k_live_", "k_test_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl"),
    *("xox", "xapp-", "akia", "asia", "abia", "acca", "aiza", "ya29.", "gocspx-", "npm_", "pypi-", "hf_"),
    *("gsk_", "xai-", "nvapi-", "r8_", "pplx-", "tvly-", "fw_", "_v1_", "dckr_pat_", "shp", "sg.", "key-"),
    *("hvs.", "hvb.", "hvr.", "lin_api_", "ntn_", "age-secret", "eyj", ":aa", "hooks.slack"),
)
_RULES: Final = (
    _Rule(_PRIVATE_KEY, _whole, ("private key",)),
    _Rule(_PASSWORD_IN_URL, _in_address, ("://",)),
    _Rule(_TOKEN, _whole, _TOKEN_HINTS),
    _Rule(_HEADER, _header, ("authorization", "x-api-key", "x-auth-token", "cookie")),
    _Rule(_BEARER, _header, ("bearer", "basic")),
    _Rule(_ASSIGNMENT, _assigned, _NAME_HINTS),
    _Rule(_STATEMENT, _header, ("identified", "password")),
    _Rule(_COMMAND, _header, ("curl", "wget", "mysql", "mariadb", "sshpass")),
    _Rule(_OPTION, _in_prose, _NAME_HINTS),
    _Rule(_SENTENCE, _in_prose, (*_NAME_HINTS, "pin")),
)
