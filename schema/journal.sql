-- SPDX-License-Identifier: Apache-2.0
--
-- The journal as it is now: the whole picture in one place. The file itself is made by migrations/*.sql, in order;
-- tests/unit/journal prove that both give the same schema. `PRAGMA application_id` is 0x6e656f6a ("neoj"),
-- `PRAGMA user_version` the number of the last migration.
--
-- `entry` is the history: one append-only table, hash-chained. A run, an operation, a step and a wait are their
-- `start`, `begin`, `intent` and `wait_begin` rows, known by their seq. All else is derived in the same transaction
-- and recomputed by `neoset-audit verify`. No foreign keys on `entry`: with partial indexes each pruned operation
-- would cost full scans; `verify` checks what they would.

CREATE TABLE meta (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  journal_id  TEXT NOT NULL CHECK (length(journal_id) = 32),
  created_us  INTEGER NOT NULL,
  min_reader  INTEGER NOT NULL DEFAULT 1,  -- readers that know a smaller user_version refuse the file
  pruned_seq  INTEGER NOT NULL DEFAULT 0,  -- entries up to this one were removed
  pruned_hash BLOB NOT NULL CHECK (length(pruned_hash) = 32)  -- hash of that entry; of nothing: made of the id
) STRICT;

CREATE TRIGGER meta_identity BEFORE UPDATE OF id, journal_id, created_us ON meta
  BEGIN SELECT RAISE(ABORT, 'meta: a journal keeps its identity'); END;
CREATE TRIGGER meta_pruned BEFORE UPDATE OF pruned_seq ON meta WHEN NEW.pruned_seq < OLD.pruned_seq
  BEGIN SELECT RAISE(ABORT, 'meta: pruned_seq never falls'); END;
CREATE TRIGGER meta_no_delete BEFORE DELETE ON meta
  BEGIN SELECT RAISE(ABORT, 'meta: a journal keeps its identity'); END;

CREATE TABLE entry (
  seq       INTEGER PRIMARY KEY CHECK (seq > 0),
  form      INTEGER NOT NULL DEFAULT 1,    -- which list of columns is hashed, and how
  -- Written with OR, the frequent first: an IN of more than two texts builds a table of its own at each insert.
  kind      TEXT NOT NULL CHECK (kind = 'intent' OR kind = 'applied' OR kind = 'wait_begin' OR kind = 'wait_end' OR
              kind = 'begin' OR kind = 'end' OR kind = 'unknown' OR kind = 'rejected' OR kind = 'overtaken' OR
              kind = 'not_sent' OR kind = 'absent' OR kind = 'late' OR kind = 'wait_hold' OR kind = 'wait_go' OR
              kind = 'start' OR kind = 'epoch' OR kind = 'stop' OR kind = 'note' OR kind = 'checkpoint' OR
              kind = 'pruned'),
  run       INTEGER NOT NULL,              -- seq of the start entry
  epoch     INTEGER NOT NULL,
  at_us     INTEGER NOT NULL,              -- wall clock, UTC
  mono_us   INTEGER NOT NULL,              -- boot clock since the start of the run
  operation INTEGER CHECK (operation > 0), -- seq of the begin entry
  step      INTEGER CHECK (step > 0),      -- seq of the intent entry
  attempt   INTEGER CHECK (attempt > 0),
  action    TEXT,                          -- begin: rollout, scale ...; intent: step kind; wait: what for; end: outcome
  object    TEXT,                          -- begin: what it is about; intent: the target; wait: what is waited for
  namespace TEXT,
  name      TEXT,
  uid       TEXT,                          -- intent: precondition; outcome: uid after
  version   TEXT CHECK (version NOT IN ('', '0')),  -- resourceVersion, in the same way
  http      INTEGER CHECK (http BETWEEN 100 AND 599),  -- NULL on an outcome: found by reading
  audit_id  TEXT,
  digest    BLOB,                          -- SHA-256(salt || body), 32 bytes
  reason    TEXT,
  detail    TEXT,                          -- JSON (no CHECK: json_valid is refused under trusted_schema=OFF)
  hash      BLOB NOT NULL,                 -- 32 bytes; verify looks, see the order trigger
  CHECK ((kind = 'start') = (run IS seq)),
  CHECK ((kind = 'begin') = (operation IS seq)),
  CHECK ((kind = 'intent') = (step IS seq)),
  CHECK ((kind = 'intent' OR kind = 'applied' OR kind = 'unknown' OR kind = 'rejected' OR kind = 'overtaken' OR
          kind = 'not_sent' OR kind = 'absent' OR kind = 'late') = (step IS NOT NULL)),
  CHECK (operation IS NOT NULL OR (kind <> 'intent' AND kind <> 'end')),
  CHECK (action IS NOT NULL OR (kind <> 'intent' AND kind <> 'begin' AND kind <> 'end' AND kind <> 'wait_begin' AND
         kind <> 'wait_hold' AND kind <> 'wait_go' AND kind <> 'wait_end')),
  CHECK ((object IS NOT NULL AND name IS NOT NULL) OR (kind <> 'intent' AND kind <> 'begin' AND
         kind <> 'wait_begin' AND kind <> 'wait_hold' AND kind <> 'wait_go' AND kind <> 'wait_end'))
) STRICT;

-- The rowid (seq) is the last column of every index by itself.
CREATE INDEX entry_operation ON entry (operation) WHERE operation IS NOT NULL;
CREATE INDEX entry_target ON entry (name, namespace)
  WHERE kind = 'intent' OR kind = 'wait_begin' OR kind = 'begin';
CREATE UNIQUE INDEX entry_outcome ON entry (step)
  WHERE kind = 'applied' OR kind = 'rejected' OR kind = 'overtaken' OR kind = 'not_sent' OR kind = 'absent';
CREATE INDEX entry_at ON entry (at_us);
CREATE INDEX entry_mark ON entry (kind)
  WHERE kind = 'start' OR kind = 'epoch' OR kind = 'stop' OR kind = 'checkpoint' OR kind = 'pruned';

-- ROLLBACK, not ABORT, and no function in a CHECK above: a statement that may abort half done keeps a copy of every
-- page that it touches, a sixth of the whole cost of an append.
CREATE TRIGGER entry_in_order BEFORE INSERT ON entry
  WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), (SELECT pruned_seq FROM meta)) + 1 FROM entry)
  BEGIN SELECT RAISE(ROLLBACK, 'entry: out of order'); END;
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry
  BEGIN SELECT RAISE(ABORT, 'entry: append only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry WHEN OLD.seq > (SELECT pruned_seq FROM meta)
  BEGIN SELECT RAISE(ABORT, 'entry: append only'); END;

CREATE TABLE body (
  step  INTEGER PRIMARY KEY,               -- seq of the intent entry
  salt  BLOB NOT NULL CHECK (length(salt) = 16),
  bytes BLOB NOT NULL                      -- exactly what was sent
) STRICT;
CREATE TRIGGER body_no_update BEFORE UPDATE ON body
  BEGIN SELECT RAISE(ABORT, 'body: never changed'); END;

-- Derived from the entries in the transaction that appends them.

CREATE TABLE operation (
  id        INTEGER PRIMARY KEY,           -- seq of the begin entry
  kind      TEXT NOT NULL,
  object    TEXT NOT NULL,
  namespace TEXT NOT NULL,                 -- '': none
  name      TEXT NOT NULL,
  come_from TEXT NOT NULL,
  go_to     TEXT NOT NULL,
  begun_us  INTEGER NOT NULL,
  ended_us  INTEGER,
  outcome   TEXT CHECK ((outcome IS NULL) = (ended_us IS NULL)),
  steps     INTEGER NOT NULL DEFAULT 0,    -- counted at the end
  attempts  INTEGER NOT NULL DEFAULT 0     -- sendings: one a step, one more for each unknown
) STRICT;
CREATE INDEX operation_object ON operation (name, namespace);
CREATE INDEX operation_begun ON operation (begun_us);
CREATE INDEX operation_ill ON operation (outcome) WHERE outcome <> 'completed';
CREATE UNIQUE INDEX operation_open ON operation (object, namespace, name, kind) WHERE ended_us IS NULL;

CREATE TABLE open_step (                   -- intents without an outcome: at most one an object, and one block
  step       INTEGER PRIMARY KEY,
  object     TEXT NOT NULL,
  namespace  TEXT NOT NULL,
  name       TEXT NOT NULL,
  blocks     INTEGER NOT NULL CHECK (blocks IN (0, 1)),  -- step kind block
  unknowns   INTEGER NOT NULL DEFAULT 0,
  last_at_us INTEGER NOT NULL,             -- of its newest entry
  salt       BLOB CHECK (length(salt) = 16),  -- of a body that is not kept: proves the same bytes while it is open
  UNIQUE (object, namespace, name, blocks)
) STRICT;

CREATE TABLE open_wait (                   -- waits without an end: a budget, and what is spent of it
  wait      INTEGER PRIMARY KEY,           -- seq of the wait_begin entry
  action    TEXT NOT NULL,
  object    TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL,
  budget_us INTEGER NOT NULL,
  spent_us  INTEGER NOT NULL,              -- up to since_us
  since_us  INTEGER,                       -- mono_us of the newest run from which it counts on; NULL: held
  UNIQUE (object, namespace, name, action)
) STRICT;
