"""The tables of the newest revision, and the list of revisions this version understands."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Revisions this version can read or upgrade, oldest first; the last one is what it writes."""

METADATA = MetaData()


def _checksum() -> Column[str]:
    """Return the column with the digest of all other columns of its row; `storage.rows` computes it."""
    return Column("checksum", String(16))


STUDIES = Table(
    "studies",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(255), nullable=False, unique=True),
    Column("problem", Text, nullable=False),  # JSON, as Problem.to_dict states it
    Column("seed", String(40), nullable=False),  # decimal digits: seeds may exceed 64 bits
    Column("settings", Text, nullable=False),  # JSON
    Column("focus", Text),  # JSON: thresholds under discussion and weights
    Column("versions", Text, nullable=False),  # JSON: of this package and of what it computes with
    Column("created", Float, nullable=False),  # seconds since 1970, UTC
    _checksum(),
)

PROGRESS = Table(
    "progress",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("evaluations", Integer, nullable=False),  # the highest id that was given out; rows up to it must be there
    Column("steps", Integer, nullable=False),  # iterations made so far; from the first one on there is a learner
    Column("entries", Integer),  # how many entries the ledger has; empty means none
    _checksum(),
)

EVALUATIONS = Table(
    "evaluations",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False),
    Column("number", Integer, nullable=False),  # the id that users see, from 1 within each study
    Column("state", String(16), nullable=False),  # running, complete, failed
    Column("kind", String(16), nullable=False),  # run, import, refine, audit
    Column("point", Text, nullable=False),  # JSON, natural units
    Column("outputs", Text),  # JSON, readings as in domain.parts, all that the simulator returned; only when complete
    Column("failure", Text),  # why it failed, one line
    Column("cause", String(16)),  # what the failure is due to: design, set-up; only when failed
    Column("log", Text),  # tail of what a failed simulator printed
    Column("started", Float),  # seconds since 1970, UTC
    Column("seconds", Float),
    Column("worker", String(255)),
    Column("thresholds", Text),  # JSON: the limits that a refinement or an audit was spent on
    Column("excluded", Text),  # why a user excluded it; empty unless excluded
    Column("holder", String(64)),  # token of the run that started it; empty when a user asked for it
    _checksum(),
    PrimaryKeyConstraint("study_id", "number"),
)

PLANNED = Table(
    "planned",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("point", Text, nullable=False),  # JSON: proposed by the method, not yet requested
    _checksum(),
    PrimaryKeyConstraint("study_id", "position"),
)

LEARNERS = Table(
    "learners",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("steps", Integer, nullable=False),  # iterations made so far
    Column("state", LargeBinary, nullable=False),
    _checksum(),
)

AMENDMENTS = Table(
    "amendments",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False),
    Column("number", Integer, nullable=False),  # from 1 within each study
    Column("problem", Text, nullable=False),  # JSON: the problem before the amendment
    Column("changes", Text, nullable=False),  # JSON: what was changed, in words
    Column("given", Text, nullable=False),  # JSON: values that earlier designs have of variables that were added
    Column("evaluations", Integer, nullable=False),  # the highest id that was given out before it
    Column("amended", Float, nullable=False),  # seconds since 1970, UTC
    _checksum(),
    PrimaryKeyConstraint("study_id", "number"),
)

LEDGER = Table(
    "ledger",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False),
    Column("number", Integer, nullable=False),  # from 1 within each study, without gaps
    Column("kind", String(16), nullable=False),  # decision, proposal, audit
    Column("made", Float, nullable=False),  # seconds since 1970, UTC
    Column("author", String(255), nullable=False),  # who made it
    Column("content", Text, nullable=False),  # JSON
    Column("previous", String(16)),  # checksum of the entry before: an entry cannot be changed without a trace
    _checksum(),
    PrimaryKeyConstraint("study_id", "number"),
)

LOCKS = Table(
    "locks",
    METADATA,
    Column("study_id", Integer, ForeignKey("studies.id"), primary_key=True),
    Column("token", String(64), nullable=False),
    Column("machine", String(255), nullable=False),  # boot and process namespace
    Column("host", String(255)),  # its name, for messages only
    Column("pid", Integer, nullable=False),
    Column("process_started", Float, nullable=False),  # tells a reused process number from the holder's
    Column("heartbeat", Float, nullable=False),  # seconds since 1970 by the database's clock
    Column("written", String(64)),  # the holder's last transaction: tells whether a commit without an answer was made
)
