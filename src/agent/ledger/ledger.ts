// The host's own memory of what it was last told to run, so that it carries on without the control plane. Held whole in memory,
// written behind to one file. Losing it is harmless: guests without an entry are only reported, never touched.

import { type Static, Type } from 'typebox';
import { Assignment, type AssignmentEvent, VolumeAssignment } from '../../api/agent-protocol.ts';
import { matches } from '../../api/parse.ts';
import { FailingCheck } from '../../api/resources/check.ts';
import { type Buggify, neverBuggify } from '../../base/buggify.ts';
import { withoutValues } from '../guests/secret-values.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';

/** Where the ledger is kept: a file, or a simulator's memory. */
export interface LedgerFile {
  /** Null: there is none yet. */
  read(): Promise<string | null>;
  /** All or nothing, and durable when it resolves. */
  write(text: string): Promise<void>;
  /** Moves what is there out of the way, for a person to look at; resolves to where it is now. */
  setAside(): Promise<string>;
}

/** Why a guest could not be made, where its driver keeps no record of it. */
export interface GuestFailure {
  readonly code: string;
  readonly message: string;
}

export interface LedgerEntry {
  readonly assignment: Assignment;
  readonly failure?: GuestFailure;
  /** What the checks of a run of its guest have shown. */
  readonly checks?: ChecksShown;
}

const ChecksShown = Type.Object(
  {
    /** `startedAtMs` of that run. */
    runAtMs: Type.Number(),
    started: Type.Boolean(),
    passing: Type.Boolean(),
    dead: Type.Optional(FailingCheck),
  },
  { additionalProperties: false },
);
export type ChecksShown = Static<typeof ChecksShown>;

/** By id. */
export interface LedgerChange {
  readonly instances: readonly string[];
  readonly volumes: readonly string[];
}

export interface Ledger {
  /** Whether the control plane has said since the start what is wanted; before, the entries may be older than what was done. */
  readonly confirmed: boolean;
  /** All incarnations of one instance that the control plane speaks of, oldest first. */
  entriesOf(instanceId: string): readonly LedgerEntry[];
  /** What counts for one instance: its newest incarnation. */
  newestOf(instanceId: string): LedgerEntry | undefined;
  instanceIds(): readonly string[];
  /** What counts for one volume; `made` also when that was only seen here. */
  volumeOf(volumeId: string): VolumeAssignment | undefined;
  volumeIds(): readonly string[];
  /** Takes in what the control plane says. Resolves nothing, decides nothing; returns whose entries changed. */
  apply(event: Exclude<AssignmentEvent, { type: 'ping' }>): LedgerChange;
  /** The volume was here, whole: kept as long as the control plane speaks of it. */
  noteVolumeMade(volumeId: string): void;
  setFailure(entry: LedgerEntry, failure: GuestFailure | undefined): void;
  noteChecks(entry: LedgerEntry, shown: ChecksShown): void;
  /** Resolves when all that was taken in before is on disk, or cannot be written. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const VolumeEntry = Type.Object(
  { assignment: VolumeAssignment, made: Type.Optional(Type.Literal(true)) },
  { additionalProperties: false },
);
type VolumeEntry = Static<typeof VolumeEntry>;

const Stored = Type.Object(
  {
    version: Type.Literal(1),
    host: Type.String(),
    machineId: Type.String(),
    entries: Type.Array(
      Type.Object(
        {
          assignment: Assignment,
          failure: Type.Optional(
            Type.Object({ code: Type.String(), message: Type.String() }, { additionalProperties: false }),
          ),
          checks: Type.Optional(ChecksShown),
        },
        { additionalProperties: false },
      ),
    ),
    /** Absent: none, as an older Berth wrote it. */
    volumes: Type.Optional(Type.Array(VolumeEntry)),
  },
  { additionalProperties: false },
);

const writeRetryMs = 5000;
const dropsRemembered = 10_000; // of one watch; each is some 100 bytes

export interface LedgerOptions {
  readonly file: LedgerFile;
  /** Whose ledger it is. That of another host or machine, in a copied data directory, is set aside: its guests are not ours. */
  readonly owner: { readonly host: string; readonly machineId: string };
  readonly clock: Clock;
  readonly log: Logger;
  readonly buggify?: Buggify;
}

export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { file, owner, clock, log, buggify = neverBuggify } = options;
  const entries = new Map<string, Map<number, LedgerEntry>>();
  const volumes = new Map<string, VolumeEntry>();
  const closing = new AbortController();
  // An incarnation that was dropped never comes back; a late message about it must not bring it back either.
  let dropped = new Set<string>();
  let written = 0;
  let changes = 0;
  let confirmed = false;
  let writing: Promise<void> | undefined;

  const stored = await readStored(options);
  for (const entry of stored.entries) keep(entry);
  for (const entry of stored.volumes ?? []) volumes.set(entry.assignment.volumeId, entry);

  function keep(entry: LedgerEntry): void {
    const { instanceId, incarnation } = entry.assignment;
    const incarnations = entries.get(instanceId) ?? new Map<number, LedgerEntry>();
    incarnations.set(incarnation, entry);
    entries.set(instanceId, incarnations);
  }

  const find = (instanceId: string, incarnation: number): LedgerEntry | undefined =>
    entries.get(instanceId)?.get(incarnation);

  const put = (assignment: Assignment): boolean => {
    const known = find(assignment.instanceId, assignment.incarnation);
    if (known !== undefined && known.assignment.revision >= assignment.revision) return false; // late, or twice
    if (dropped.has(nameOf(assignment))) return false;
    keep(withAssignment(known, assignment));
    return true;
  };

  const rememberDropped = (name: string): void => {
    if (dropped.size >= dropsRemembered) dropped = new Set([...dropped].slice(dropsRemembered / 2));
    dropped.add(name);
  };

  const putVolume = (assignment: VolumeAssignment): boolean => {
    const known = volumes.get(assignment.volumeId);
    const sameLife = known?.assignment.life === assignment.life;
    if (sameLife && known !== undefined && known.assignment.revision >= assignment.revision) return false;
    if (dropped.has(nameOfVolume(assignment))) return false;
    volumes.set(assignment.volumeId, sameLife ? { ...known, assignment } : { assignment });
    return true;
  };

  const dropVolume = (gone: VolumeLife): boolean => {
    rememberDropped(nameOfVolume(gone));
    return volumes.get(gone.volumeId)?.assignment.life === gone.life && volumes.delete(gone.volumeId);
  };

  const drop = (gone: { readonly instanceId: string; readonly incarnation: number }): boolean => {
    rememberDropped(nameOf(gone));
    const incarnations = entries.get(gone.instanceId);
    const had = incarnations?.delete(gone.incarnation) ?? false;
    if (incarnations?.size === 0) entries.delete(gone.instanceId);
    return had;
  };

  /** Whatever is not in `assignments` is forgotten; its guest, if there is one, is unknown from now on. */
  const replaceAll = (assignments: readonly Assignment[]): string[] => {
    const before = new Map([...entries].map(([id, incarnations]) => [id, new Map(incarnations)]));
    entries.clear();
    dropped = new Set();
    for (const assignment of assignments) {
      const known = before.get(assignment.instanceId)?.get(assignment.incarnation);
      keep(withAssignment(known, assignment));
    }
    return [...new Set([...before.keys(), ...entries.keys()])];
  };

  const replaceVolumes = (assignments: readonly VolumeAssignment[]): string[] => {
    const before = new Map(volumes);
    volumes.clear();
    for (const assignment of assignments)
      volumes.set(assignment.volumeId, { ...before.get(assignment.volumeId), assignment });
    return [...new Set([...before.keys(), ...volumes.keys()])];
  };

  const apply = (event: Exclude<AssignmentEvent, { type: 'ping' }>): LedgerChange => {
    const changed = take(event);
    if (changed.instances.length > 0 || changed.volumes.length > 0) save();
    return changed;
  };

  const take = (event: Exclude<AssignmentEvent, { type: 'ping' }>): LedgerChange => {
    const instances = (changed: readonly string[]): LedgerChange => ({ instances: changed, volumes: [] });
    const ofVolume = (changed: boolean, volumeId: string): LedgerChange => ({
      instances: [],
      volumes: changed ? [volumeId] : [],
    });
    switch (event.type) {
      case 'sync':
        confirmed = true;
        return { instances: replaceAll(event.assignments), volumes: replaceVolumes(event.volumes ?? []) };
      case 'put':
        return instances(put(event.assignment) ? [event.assignment.instanceId] : []);
      case 'drop':
        return instances(drop(event) ? [event.instanceId] : []);
      case 'put-volume':
        return ofVolume(putVolume(event.volume), event.volume.volumeId);
      case 'drop-volume':
        return ofVolume(dropVolume(event), event.volumeId);
    }
  };

  const save = (): void => {
    changes += 1;
    startWriting();
  };

  const startWriting = (): void => {
    writing ??= writeAll().finally(() => {
      writing = undefined;
      if (written < changes && !closing.signal.aborted) startWriting();
    });
  };

  /** One write at a time; what changes meanwhile is in the next. */
  const writeAll = async (): Promise<void> => {
    await Promise.resolve(); // what changes in this turn is in one write
    let failing = false;
    while (written < changes) {
      const upTo = changes;
      try {
        await file.write(encode());
        if (buggify('ledger-twice')) await file.write(encode());
        written = upTo;
        failing = false;
      } catch (error) {
        if (!failing) {
          log.warn('cannot write the ledger; trying again until it works', { error: describeError(error) });
        }
        failing = true;
        if (closing.signal.aborted) return;
        await sleep(clock, writeRetryMs, closing.signal);
      }
    }
  };

  const encode = (): string => {
    const all = [...entries.values()].flatMap((incarnations) =>
      [...incarnations.values()].map((entry) => ({ ...entry, assignment: withoutValues(entry.assignment) })),
    );
    const ofVolumes = volumes.size === 0 ? {} : { volumes: [...volumes.values()] };
    return `${JSON.stringify({ version: 1, ...owner, entries: all, ...ofVolumes } satisfies Static<typeof Stored>)}\n`;
  };

  const entriesOf = (instanceId: string): LedgerEntry[] =>
    [...(entries.get(instanceId)?.values() ?? [])].sort((a, b) => a.assignment.incarnation - b.assignment.incarnation);

  return {
    get confirmed() {
      return confirmed;
    },
    entriesOf,
    newestOf: (instanceId) => entriesOf(instanceId).at(-1),
    instanceIds: () => [...entries.keys()],
    volumeOf(volumeId) {
      const known = volumes.get(volumeId);
      return known?.made ? { ...known.assignment, made: true } : known?.assignment;
    },
    volumeIds: () => [...volumes.keys()],
    apply,
    noteVolumeMade(volumeId) {
      const known = volumes.get(volumeId);
      if (known === undefined || known.made || known.assignment.made) return;
      volumes.set(volumeId, { ...known, made: true });
      save();
    },
    setFailure({ assignment }, failure) {
      const known = find(assignment.instanceId, assignment.incarnation);
      if (known === undefined) return; // forgotten meanwhile
      const { failure: _failure, ...rest } = known;
      keep({ ...rest, ...(failure ? { failure } : {}) });
      save();
    },
    noteChecks({ assignment }, checks) {
      const known = find(assignment.instanceId, assignment.incarnation);
      if (known === undefined) return; // forgotten meanwhile
      keep({ ...known, checks });
      save();
    },
    async flush() {
      await writing;
    },
    async close() {
      closing.abort();
      await writing;
    },
  };
}

/** A failure is of the run that was ordered when it came. */
function withAssignment(known: LedgerEntry | undefined, assignment: Assignment): LedgerEntry {
  const sameOrder = known?.assignment.startAgain?.order === assignment.startAgain?.order;
  return {
    assignment,
    ...(known?.failure !== undefined && sameOrder ? { failure: known.failure } : {}),
    ...(known?.checks === undefined ? {} : { checks: known.checks }),
  };
}

type VolumeLife = Pick<VolumeAssignment, 'volumeId' | 'life'>;

function nameOfVolume({ volumeId, life = 1 }: VolumeLife): string {
  return `${volumeId}/${life}`;
}

function nameOf({ instanceId, incarnation }: { readonly instanceId: string; readonly incarnation: number }): string {
  return `${instanceId}/${incarnation}`;
}

/** What was stored; nothing, with a warning, when that cannot be used. */
async function readStored({
  file,
  owner,
  log,
}: LedgerOptions): Promise<Pick<Static<typeof Stored>, 'entries' | 'volumes'>> {
  let text: string | null;
  try {
    text = await file.read();
  } catch (error) {
    log.warn('cannot read the ledger; starting without one until the control plane answers', {
      error: describeError(error),
    });
    return { entries: [] };
  }
  if (text === null) return { entries: [] };
  const stored = decode(text);
  const ours = stored !== undefined && stored.host === owner.host && stored.machineId === owner.machineId;
  if (ours) return stored;
  const fault =
    stored === undefined ? 'it is damaged' : `it belongs to host "${stored.host}" or to another machine of that name`;
  const setAside = await file.setAside().catch((error: unknown) => `nowhere (${describeError(error)})`);
  log.warn('the ledger cannot be used; starting without one until the control plane answers', { fault, setAside });
  return { entries: [] };
}

function decode(text: string): Static<typeof Stored> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // half-written or overwritten: not a ledger
  }
  return matches(Stored, value) ? value : undefined;
}
