"""Memory for hermes-agent that lives in PostgreSQL.

The schema `memvec` in the database holds the tables and every rule; this package embeds text, carries it to
the functions of that schema, and hands their results to the host.
"""

__version__ = "0.1.0"
