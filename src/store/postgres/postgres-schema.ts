// The tables, the function that commits, and how they come to be: numbered steps, each in a transaction of its own under a lock,
// so that several servers may start at once. A step that was released never changes; a new one is added.

import { StoreError } from '../store.ts';
import type { PostgresTarget } from './postgres-url.ts';
import type { Query } from './postgres-session.ts';

/**
 * 1: as below. `state` has one row: the lock of all commits, and what is rarely changed. `log` has a row for each revision: `events` as
 * event-codec.ts writes them, their CRC-32, which of them did not happen (deletes of absent keys, counted from 0; null: none), and what
 * asked for them: the batch, and the place in it. Its last row is the revision of the store, and never goes. Values are not compressed:
 * they are small or already dense, and commits wait for it.
 *
 * 2: single writes have a function of their own.
 */
const steps: readonly ((schema: string) => string)[] = [
  (schema) => `
    CREATE TABLE ${schema}.state (
      one boolean PRIMARY KEY DEFAULT true CHECK (one), compacted bigint NOT NULL, format integer NOT NULL
    );
    CREATE TABLE ${schema}.entries (
      key text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, revision bigint NOT NULL
    ) WITH (fillfactor = 90);
    CREATE TABLE ${schema}.log (
      revision bigint PRIMARY KEY, batch uuid NOT NULL, request integer NOT NULL,
      events bytea NOT NULL, checksum bigint NOT NULL, absent integer[]
    );
    ALTER TABLE ${schema}.entries ALTER value SET STORAGE EXTERNAL;
    ALTER TABLE ${schema}.log ALTER events SET STORAGE EXTERNAL;
    INSERT INTO ${schema}.state (compacted, format) VALUES (1, 0);
    ${commitFunction(schema)}`,
  commitOneFunction,
];

/** Up to this many keys are written one by one: a single row costs half as much then, and from here on sets are cheaper. */
const fewKeys = 4;

/** What this Berth knows. */
const format = steps.length;

/** Brings the schema to what this Berth knows; refuses a newer one. When it fails, the session must end. */
export async function migrate(
  query: Query,
  { schema, where }: PostgresTarget,
  { mustExist }: { readonly mustExist: boolean },
): Promise<void> {
  const lock = `hashtextextended('berth schema ${schema}', 0)`;
  const before = await formatOf(query, schema);
  if (before > format) throw newer(before, { schema, where });
  if (before === format) return;
  if (before === 0 && mustExist)
    throw new StoreError(
      'Invalid',
      `there is no store in schema "${schema}" on ${where}; the URL names one with ?schema=`,
    );
  // Not for one transaction: what another server has made meanwhile is only sure to be seen in a transaction that begins after it.
  await query(`SELECT pg_advisory_lock(${lock})`);
  const found = await formatOf(query, schema);
  if (found > format) throw newer(found, { schema, where });
  for (const [i, step] of steps.entries()) {
    if (i < found) continue;
    await query('BEGIN');
    if (i === 0) await makeSchema(query, schema);
    await query(step(schema));
    await query(`UPDATE ${schema}.state SET format = ${i + 1}`);
    await query('COMMIT');
  }
  await query(`SELECT pg_advisory_unlock(${lock})`);
}

/** Asked for only when it is not there: it takes a right that the role may not need. */
async function makeSchema(query: Query, schema: string): Promise<void> {
  const [[there] = []] = await query(`SELECT to_regnamespace('${schema}') IS NOT NULL`);
  if (there !== true) await query(`CREATE SCHEMA ${schema}`);
}

/** 0: there is nothing yet. */
async function formatOf(query: Query, schema: string): Promise<number> {
  const [[there] = []] = await query(`SELECT to_regclass('${schema}.state') IS NOT NULL`);
  if (there !== true) return 0;
  const [[found] = []] = await query(`SELECT format FROM ${schema}.state`);
  return Number(found);
}

function newer(found: number, { schema, where }: { schema: string; where: string }): StoreError {
  return new StoreError(
    'Invalid',
    `schema "${schema}" on ${where} was made by a newer Berth (format ${found}, this one knows ${format}); start that version`,
  );
}

/** As SQL: the revision of the store. */
export function revisionOf(schema: string): string {
  return `coalesce((SELECT max(log.revision) FROM ${schema}.log), 0)`;
}

/** Other servers listen here for the revision that a commit has made. */
export function channelOf(schema: string): string {
  return `berth_${schema}`;
}

/**
 * As SQL: a lock that each session which listens shares, from before it listens. A commit that can have it alone has no other listener, and
 * spares itself the notice: a fifth of what a small commit costs the server.
 */
export function listenersOf(schema: string): string {
  return `hashtextextended('berth listeners ${schema}', 0)`;
}

/**
 * A batch of commits: decided in memory, in order, each seeing those before it; then written set by set. The arrays are those of
 * commit-batch.ts. It answers the revision before, then for each request its revision, or the condition that failed, negative, and then the
 * writes that deleted nothing; both count from 1.
 *
 * The first statement locks the one row of `state` until the transaction ends, so batches of all servers stand in a line, and each takes
 * its revisions where the one before left off, without a gap. READ COMMITTED is enough: each later statement sees all that was committed
 * before it began, and nothing is written without that lock. A reader that sees a row of the log sees the entries that were committed with it. The
 * row is locked, not written: its old versions would have to stay for as long as a backup reads, and every commit would walk past them.
 */
function commitFunction(schema: string): string {
  return `
    CREATE FUNCTION ${schema}.commit_1(
      batch uuid, payload bytea, keys text[],
      condition_ends integer[], condition_keys integer[], condition_revisions bigint[],
      write_ends integer[], write_keys integer[], value_starts integer[], value_lengths integer[],
      event_starts integer[], event_lengths integer[], checksums bigint[]
    ) RETURNS bigint[] LANGUAGE plpgsql AS $$
    DECLARE
      requests integer := cardinality(write_ends);
      first bigint;
      last bigint;
      before bigint[];                                              -- by key: the revision in the table, 0: absent
      after bigint[];                                               -- by key: the same, with the requests decided so far
      latest integer[] := array_fill(0, ARRAY[cardinality(keys)]);  -- by key: the write to go into the table, 0: none
      answers bigint[] := '{}';
      absent bigint[] := '{}';
      absent_here integer[];
      failed integer;
      changed boolean;
      c integer := 1;
      w integer := 1;
      w_first integer;
    BEGIN
      PERFORM FROM ${schema}.state FOR UPDATE;
      SELECT ${revisionOf(schema)}, ARRAY(
        SELECT coalesce((SELECT entries.revision FROM ${schema}.entries WHERE entries.key = asked.key), 0)
        FROM unnest(keys) AS asked(key)
      ) INTO first, before;
      last := first;
      after := before;
      FOR request IN 1 .. requests LOOP
        failed := 0;
        WHILE c <= condition_ends[request] LOOP
          IF failed = 0 AND after[condition_keys[c]] <> condition_revisions[c] THEN failed := c; END IF;
          c := c + 1;
        END LOOP;
        IF failed > 0 THEN
          w := write_ends[request] + 1;
          answers := answers || -failed::bigint;
          CONTINUE;
        END IF;
        w_first := w;
        changed := false;
        absent_here := NULL;
        WHILE w <= write_ends[request] LOOP
          IF value_lengths[w] < 0 AND after[write_keys[w]] = 0 THEN
            absent := absent || w::bigint;
            absent_here := absent_here || (w - w_first);
          ELSE
            changed := true;
            latest[write_keys[w]] := w;
            after[write_keys[w]] := CASE WHEN value_lengths[w] < 0 THEN 0 ELSE last + 1 END;
          END IF;
          w := w + 1;
        END LOOP;
        IF changed THEN
          last := last + 1;
          INSERT INTO ${schema}.log (revision, batch, request, events, checksum, absent) VALUES (
            last, batch, request, substr(payload, event_starts[request], event_lengths[request]), checksums[request], absent_here
          );
        END IF;
        answers := answers || last;
      END LOOP;
      IF last > first THEN
        IF cardinality(keys) <= ${fewKeys} THEN
          FOR k IN 1 .. cardinality(keys) LOOP
            w := latest[k];
            IF w = 0 THEN CONTINUE;
            ELSIF after[k] = 0 THEN
              DELETE FROM ${schema}.entries WHERE key = keys[k];
            ELSIF before[k] = 0 THEN
              INSERT INTO ${schema}.entries (key, value, revision)
                VALUES (keys[k], substr(payload, value_starts[w], value_lengths[w]), after[k]);
            ELSE
              UPDATE ${schema}.entries
                SET value = substr(payload, value_starts[w], value_lengths[w]), revision = after[k] WHERE key = keys[k];
            END IF;
          END LOOP;
        ELSE
          IF 0 = ANY (before) THEN
            INSERT INTO ${schema}.entries (key, value, revision)
              SELECT new.key, substr(payload, value_starts[new.write], value_lengths[new.write]), new.revision
              FROM unnest(keys, latest, before, after) AS new(key, write, was, revision)
              WHERE new.write > 0 AND new.was = 0 AND new.revision > 0;
          END IF;
          IF 0 < ANY (before) THEN
            UPDATE ${schema}.entries
              SET value = substr(payload, value_starts[new.write], value_lengths[new.write]), revision = new.revision
              FROM unnest(keys, latest, before, after) AS new(key, write, was, revision)
              WHERE new.write > 0 AND new.was > 0 AND new.revision > 0 AND entries.key = new.key;
            IF 0 = ANY (after) THEN
              DELETE FROM ${schema}.entries USING unnest(keys, latest, before, after) AS gone(key, write, was, revision)
                WHERE gone.write > 0 AND gone.was > 0 AND gone.revision = 0 AND entries.key = gone.key;
            END IF;
          END IF;
        END IF;
        IF NOT pg_try_advisory_xact_lock(${listenersOf(schema)}) THEN
          PERFORM pg_notify('${channelOf(schema)}', last::text);
        END IF;
      END IF;
      RETURN first || answers || absent;
    END $$;`;
}

/**
 * The same for one request with one write, as leases and most changes of users are: it needs no arrays to decide on, and costs the server
 * a third less. `value_length` below 0: the key is deleted.
 */
function commitOneFunction(schema: string): string {
  return `
    CREATE FUNCTION ${schema}.commit_one_1(
      batch uuid, payload bytea, written text, value_start integer, value_length integer, checksum bigint,
      condition_keys text[], condition_revisions bigint[]
    ) RETURNS bigint[] LANGUAGE plpgsql AS $$
    DECLARE
      first bigint;
      was bigint;  -- the revision in the table, 0: absent
      held bigint;
    BEGIN
      PERFORM FROM ${schema}.state FOR UPDATE;
      first := ${revisionOf(schema)};
      SELECT entries.revision INTO was FROM ${schema}.entries WHERE entries.key = written;
      was := coalesce(was, 0);
      FOR c IN 1 .. cardinality(condition_keys) LOOP
        IF condition_keys[c] = written THEN held := was;
        ELSE SELECT entries.revision INTO held FROM ${schema}.entries WHERE entries.key = condition_keys[c];
        END IF;
        IF coalesce(held, 0) <> condition_revisions[c] THEN RETURN ARRAY[first, -c]; END IF;
      END LOOP;
      IF value_length < 0 AND was = 0 THEN RETURN ARRAY[first, first, 1]; END IF;
      INSERT INTO ${schema}.log (revision, batch, request, events, checksum) VALUES (first + 1, batch, 1, payload, checksum);
      IF value_length < 0 THEN
        DELETE FROM ${schema}.entries WHERE key = written;
      ELSIF was = 0 THEN
        INSERT INTO ${schema}.entries (key, value, revision)
          VALUES (written, substr(payload, value_start, value_length), first + 1);
      ELSE
        UPDATE ${schema}.entries SET value = substr(payload, value_start, value_length), revision = first + 1 WHERE key = written;
      END IF;
      IF NOT pg_try_advisory_xact_lock(${listenersOf(schema)}) THEN
        PERFORM pg_notify('${channelOf(schema)}', (first + 1)::text);
      END IF;
      RETURN ARRAY[first, first + 1];
    END $$;`;
}
