// A thin client of the Docker API, as podman and Docker serve it on a unix socket: what the driver needs of it, every answer checked and
// bounded. It decides nothing. Where podman differs it is said beside the call.

import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Clock } from '../../../base/clock.ts';
import { createEngineHttp, EngineError, type EngineHttp, type EngineUpload } from './engine-http.ts';
import { type ExecCall, type Execution, startExecution } from './exec.ts';
import { type Frame, frameReader } from './frames.ts';
import { jsonLines } from './json-lines.ts';

const Nullable = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));
const Labels = Type.Record(Type.String(), Type.String());

const Version = Type.Object({
  Version: Type.String(),
  ApiVersion: Type.String({ pattern: '^\\d+\\.\\d+$' }),
  MinAPIVersion: Type.Optional(Type.String({ pattern: '^\\d+\\.\\d+$' })),
  Arch: Type.String(),
  Components: Nullable(Type.Array(Type.Object({ Name: Type.String() }))),
});

const Image = Type.Object({
  Id: Type.String({ minLength: 1 }),
  RepoDigests: Nullable(Type.Array(Type.String())),
  Architecture: Type.String(),
});
export type EngineImage = Static<typeof Image>;

/** Of a container, by inspect; without its environment, which is nobody's business. */
const Container = Type.Object({
  Id: Type.String({ minLength: 1 }),
  Image: Type.String(),
  State: Type.Object({
    /** created, running, paused, restarting, stopping, removing, exited, dead. */
    Status: Type.String(),
    ExitCode: Type.Integer(),
    OOMKilled: Type.Optional(Type.Boolean()),
    StartedAt: Type.Optional(Type.String()),
    FinishedAt: Type.Optional(Type.String()),
    Health: Nullable(Type.Object({ Status: Type.Optional(Type.String()) })),
  }),
  Config: Type.Object({
    Labels: Nullable(Labels),
    StopSignal: Nullable(Type.Union([Type.String(), Type.Integer()])),
    Healthcheck: Nullable(
      Type.Object({ Test: Nullable(Type.Array(Type.String())), Interval: Nullable(Type.Integer()) }),
    ),
  }),
  HostConfig: Type.Object({
    /** Bytes; 0: no limit. */
    Memory: Type.Optional(Type.Number()),
    PortBindings: Nullable(
      Type.Record(
        Type.String(),
        Type.Union([Type.Null(), Type.Array(Type.Object({ HostPort: Type.Optional(Type.String()) }))]),
      ),
    ),
  }),
  NetworkSettings: Type.Optional(
    Type.Object({
      IPAddress: Type.Optional(Type.String()),
      Networks: Nullable(Type.Record(Type.String(), Type.Object({ IPAddress: Type.Optional(Type.String()) }))),
    }),
  ),
});
export type EngineContainer = Static<typeof Container>;

const Listed = Type.Array(
  Type.Object({ Id: Type.String({ minLength: 1 }), State: Type.Optional(Type.String()), Labels: Nullable(Labels) }),
);
export type ListedContainer = Static<typeof Listed>[number];

const Event = Type.Object({
  Action: Type.String(),
  Actor: Type.Object({ ID: Type.String(), Attributes: Nullable(Labels) }),
});
export type EngineEvent = Static<typeof Event>;

const PullLine = Type.Object({
  id: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  progressDetail: Nullable(Type.Object({ current: Type.Optional(Type.Number()), total: Type.Optional(Type.Number()) })),
});
export type PullLine = Static<typeof PullLine>;

export interface EngineVersion {
  readonly kind: 'podman' | 'docker';
  readonly version: string;
  /** As Go says it: amd64, arm64. */
  readonly architecture: string;
}

export interface LogRange {
  /** Seconds since the Unix epoch; 0: from the beginning. */
  readonly sinceSeconds: number;
  /** Until the container ends. */
  readonly follow: boolean;
  readonly signal: AbortSignal;
}

/** Every call throws `EngineError`. */
export interface Engine {
  version(): Promise<EngineVersion>;
  /** What the engine has under this reference; null: nothing. */
  image(reference: string): Promise<EngineImage | null>;
  /** Resolves when it is there. Throws what the registry said. */
  pull(reference: string, call: { readonly signal: AbortSignal; onLine(line: PullLine): void }): Promise<void>;
  /** `config` as in `ContainerCreate` of the Docker API. Answers the id. */
  create(name: string, config: unknown): Promise<string>;
  /** Harmless when it runs. */
  start(container: string): Promise<void>;
  /** Sends a signal. Harmless when it does not run. */
  kill(container: string, signal: string): Promise<void>;
  /** Holds all its processes still. Throws where it does not run, or stands still already. */
  pause(container: string): Promise<void>;
  unpause(container: string): Promise<void>;
  /** Whatever it does, with its nameless volumes. Harmless when there is none. */
  remove(container: string): Promise<void>;
  inspect(container: string): Promise<EngineContainer | null>;
  /** All that bear this label, whether they run or not. */
  list(label: string): Promise<readonly ListedContainer[]>;
  /** Each frame begins with a time and a space; podman's have whole seconds. */
  logs(container: string, range: LogRange): AsyncGenerator<readonly Frame[]>;
  /** What happens to containers from a time on, in seconds since the Unix epoch. Ends with the engine, or with `signal`. */
  events(sinceSeconds: number, signal: AbortSignal): AsyncGenerator<EngineEvent>;
  /** podman leaves health checks to systemd; without it nobody makes them but who asks for one. Docker has no such call. */
  checkHealth(container: string): Promise<void>;
  exec(container: string, call: ExecCall): Promise<Execution>;
  /** What is at a path of the container, links not followed; null: nothing. */
  look(container: string, path: string): Promise<PathLook | null>;
  /** A file or a directory, with all that is in it, as a tar archive in which it has its own name. */
  archive(container: string, path: string): AsyncGenerator<Buffer>;
  /** Unpacks a tar archive into a directory of the container. */
  unpack(container: string, path: string): Promise<EngineUpload>;
}

const PathStat = Type.Object({ name: Type.String(), mode: Type.Integer({ minimum: 0 }) });
export type PathLook = 'file' | 'directory' | 'link' | 'other';

/** As Go's io/fs has them. */
const modeBits = { directory: 2 ** 31, link: 2 ** 27, other: 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21 + 2 ** 19 };

export interface EngineOptions {
  /** Looked for at each call. Throws `EngineError`. */
  readonly socketPath: () => Promise<string>;
  readonly clock: Clock;
}

/** podman 4.3 serves this one, and Docker since 20.10; what needs a newer one says so by its MinAPIVersion. */
const apiVersion = '1.41';
const timeoutMs = 60_000; // a start takes 150 ms, and seconds on a host that swaps
const versionTimeoutMs = 5000;

export function createEngine({ socketPath, clock }: EngineOptions): Engine {
  const connection = { socketPath, clock, timeoutMs };
  const unversioned = createEngineHttp({ ...connection, version: '' });
  let versioned: EngineHttp | undefined;

  const askVersion = async (): Promise<Static<typeof Version>> => {
    const answer = await unversioned.json(Version, { method: 'GET', path: '/version', timeoutMs: versionTimeoutMs });
    const least = answer.MinAPIVersion ?? apiVersion;
    versioned = createEngineHttp({ ...connection, version: `/v${isNewer(least, apiVersion) ? least : apiVersion}` });
    return answer;
  };
  const http = async (): Promise<EngineHttp> => {
    if (versioned === undefined) await askVersion();
    return versioned ?? unversioned;
  };
  const done = async (path: string, query: Readonly<Record<string, string>> = {}): Promise<void> =>
    (await http()).done({ method: 'POST', path, query });

  return {
    async version() {
      const { Version: version, Components, Arch: architecture } = await askVersion();
      const isPodman = Components?.some(({ Name }) => Name === 'Podman Engine') ?? false;
      return { kind: isPodman ? 'podman' : 'docker', version, architecture };
    },
    async image(reference) {
      return orNull((await http()).json(Image, { method: 'GET', path: `/images/${encodeURI(reference)}/json` }));
    },
    async pull(reference, { signal, onLine }) {
      const call = { method: 'POST', path: '/images/create', query: { fromImage: reference }, signal } as const;
      let error: string | undefined;
      // podman answers when the first layer begins, and a registry may take its time until then.
      for await (const line of jsonLines((await http()).stream({ ...call, timeoutMs: pullSilenceMs }))) {
        if (!Check(PullLine, line)) continue;
        error ??= line.error;
        onLine(line);
      }
      if (signal.aborted) throw new EngineError(`pulling ${reference}: given up`);
      if (error !== undefined) throw new EngineError(error.slice(0, 2000), 404);
    },
    async create(name, config) {
      const created = Type.Object({ Id: Type.String({ minLength: 1 }) });
      const call = { method: 'POST', path: '/containers/create', query: { name }, body: config } as const;
      return (await (await http()).json(created, call)).Id;
    },
    start: (container) => done(pathOf(container, 'start')),
    async kill(container, signal) {
      try {
        await done(pathOf(container, 'kill'), { signal });
      } catch (error) {
        if (!(error instanceof EngineError) || error.status === undefined) throw error;
        if (error.status === 404 || error.status === 409) return; // not there, not running
        if (!/can only kill running containers/i.test(error.message)) throw error; // podman's words, with status 500
      }
    },
    pause: (container) => done(pathOf(container, 'pause')),
    unpause: (container) => done(pathOf(container, 'unpause')),
    async remove(container) {
      const query = { force: 'true', v: 'true' };
      await orNull((await http()).done({ method: 'DELETE', path: pathOf(container), query }));
    },
    async inspect(container) {
      return orNull((await http()).json(Container, { method: 'GET', path: pathOf(container, 'json') }));
    },
    async list(label) {
      const query = { all: 'true', filters: JSON.stringify({ label: [label] }) };
      return (await http()).json(Listed, { method: 'GET', path: '/containers/json', query });
    },
    async *logs(container, { sinceSeconds, follow, signal }) {
      const query = {
        stdout: 'true',
        stderr: 'true',
        timestamps: 'true',
        follow: String(follow),
        ...(sinceSeconds === 0 ? {} : { since: String(sinceSeconds) }),
      };
      const reader = frameReader();
      const pieces = (await http()).stream({
        method: 'GET',
        path: pathOf(container, 'logs'),
        query,
        signal,
        timeoutMs: 0,
      });
      for await (const piece of pieces) {
        const frames = reader.push(piece);
        if (frames.length > 0) yield frames;
      }
    },
    async *events(sinceSeconds, signal) {
      const query = { since: String(sinceSeconds), filters: JSON.stringify({ type: ['container'] }) };
      const stream = (await http()).stream({ method: 'GET', path: '/events', query, signal, timeoutMs: 0 });
      for await (const line of jsonLines(stream)) if (Check(Event, line)) yield line;
    },
    async checkHealth(container) {
      const path = `/libpod${pathOf(container, 'healthcheck')}`;
      await createEngineHttp({ ...connection, version: '/v4.0.0' }).done({ method: 'GET', path });
    },
    async look(container, path) {
      const call = { method: 'HEAD', path: pathOf(container, 'archive'), query: { path } } as const;
      const said = await orNull((await http()).header('x-docker-container-path-stat', call));
      if (said === null) return null;
      const stat: unknown = JSON.parse(Buffer.from(said, 'base64').toString());
      if (!Check(PathStat, stat)) throw new EngineError(`the container engine does not say what is at ${path}`);
      const has = (bits: number): boolean => (BigInt(stat.mode) & BigInt(bits)) !== 0n;
      return has(modeBits.directory)
        ? 'directory'
        : has(modeBits.link)
          ? 'link'
          : has(modeBits.other)
            ? 'other'
            : 'file';
    },
    async *archive(container, path) {
      yield* (await http()).stream({ method: 'GET', path: pathOf(container, 'archive'), query: { path } });
    },
    async unpack(container, path) {
      return (await http()).upload({ method: 'PUT', path: pathOf(container, 'archive'), query: { path } });
    },
    async exec(container, call) {
      return startExecution({ http: await http(), clock, container }, call);
    },
  };
}

/** A registry that says nothing for so long says nothing more. */
const pullSilenceMs = 10 * 60_000;

const pathOf = (container: string, verb?: string): string =>
  `/containers/${encodeURIComponent(container)}${verb === undefined ? '' : `/${verb}`}`;

async function orNull<Result>(answer: Promise<Result>): Promise<Result | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return null;
    throw error;
  }
}

function isNewer(a: string, b: string): boolean {
  const [majorA = 0, minorA = 0] = a.split('.').map(Number);
  const [majorB = 0, minorB = 0] = b.split('.').map(Number);
  return majorA > majorB || (majorA === majorB && minorA > minorB);
}
