"""The three tables of a ledger, the same in SQLite and PostgreSQL. Rows are added and never changed."""

from __future__ import annotations

from sqlalchemy import DDL, BigInteger, Column, Index, MetaData, Table, Text, UniqueConstraint, event

VERSION = 1
METADATA = MetaData()
LEDGER = Table(
    "tightrope_ledger",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
)
ENTRIES = Table(
    "tightrope_entries",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("dataset", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text),
    Column("time", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("dataset", "kind", "key", name="tightrope_once"),
    Index("tightrope_of_dataset", "dataset", "number"),
)
DOCUMENTS = Table(
    "tightrope_documents",
    METADATA,
    Column("hash", Text, primary_key=True),
    Column("content", Text, nullable=False),
)
"""Longer texts – noise as data, answers that were paid – under their SHA-256."""
REFUSAL = "rows of a ledger are never changed"


def _keep(table: Table) -> None:
    """Triggers that refuse what an accident would do: updates and deletions."""
    for work in ("UPDATE", "DELETE"):
        name = f"{table.name}_{work.lower()}"
        lite = f"CREATE TRIGGER {name} BEFORE {work} ON {table.name} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        event.listen(table, "after_create", _ddl(lite).execute_if(dialect="sqlite"))
        postgres = f"CREATE TRIGGER {name} BEFORE {work} ON {table.name} EXECUTE FUNCTION tightrope_refuse()"
        event.listen(table, "after_create", _ddl(postgres).execute_if(dialect="postgresql"))


def _ddl(statement: str) -> DDL:
    return DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for it


FUNCTION = _ddl(
    "CREATE OR REPLACE FUNCTION tightrope_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
)
event.listen(METADATA, "before_create", FUNCTION.execute_if(dialect="postgresql"))
for kept in (LEDGER, ENTRIES, DOCUMENTS):
    _keep(kept)
