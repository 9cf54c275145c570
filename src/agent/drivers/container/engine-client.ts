// A client of the Docker API on a unix socket. Every answer is checked and bounded. It decides nothing. Where podman differs,
// a comment beside the call says so.

import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Clock } from '../../../base/clock.ts';
import type { Credential } from '../../images/credentials/image-credentials.ts';
import type { ContainerBridge } from '../../network/container-guard.ts';
import type { Engine, EngineVersion, LogRange, PathLook } from './engine.ts';
import * as answers from './engine-answers.ts';
import { createEngineHttp, EngineError, type EngineHttp, type EngineUpload } from './engine-http.ts';
import { type ExecCall, type Execution, startExecution } from './exec.ts';
import { type Frame, frameReader } from './frames.ts';
import { jsonLines } from './json-lines.ts';

export interface EngineOptions {
  /** Resolved for each call. Throws `EngineError`. */
  readonly socketPath: () => Promise<string>;
  readonly clock: Clock;
}

/** podman 4.3 and Docker since 20.10 serve this version; an engine that needs a newer one reports it as MinAPIVersion. */
const apiVersion = '1.41';
const timeoutMs = 60_000; // a start takes 150 ms, and seconds on a host that swaps
const versionTimeoutMs = 5000;
/** A registry that was silent this long will not answer any more. */
const pullSilenceMs = 10 * 60_000;

export class EngineClient implements Engine {
  readonly #clock: Clock;
  readonly #connect: (version: string) => EngineHttp;
  readonly #unversioned: EngineHttp;
  #versioned: EngineHttp | undefined;

  constructor({ socketPath, clock }: EngineOptions) {
    this.#clock = clock;
    this.#connect = (version) => createEngineHttp({ socketPath, clock, timeoutMs, version });
    this.#unversioned = this.#connect('');
  }

  async version(): Promise<EngineVersion> {
    const { Version: version, Components, Arch: architecture } = await this.#askVersion();
    const isPodman = Components?.some(({ Name }) => Name === 'Podman Engine') ?? false;
    return { kind: isPodman ? 'podman' : 'docker', version, architecture };
  }

  async image(reference: string): Promise<answers.EngineImage | null> {
    const http = await this.#http();
    return orNull(http.json(answers.Image, { method: 'GET', path: `/images/${encodeURI(reference)}/json` }));
  }

  async pull(reference: string, { signal, credential, onLine }: Parameters<Engine['pull']>[1]): Promise<void> {
    const http = await this.#http();
    const headers: Record<string, string> =
      credential === undefined ? {} : { 'x-registry-auth': registryAuth(reference, credential) };
    const call = { method: 'POST', path: '/images/create', query: { fromImage: reference }, headers, signal } as const;
    let error: string | undefined;
    // podman answers when the first layer begins, and a registry may be slow until then.
    for await (const line of jsonLines(http.stream({ ...call, timeoutMs: pullSilenceMs }))) {
      if (!Check(answers.PullLine, line)) continue;
      error ??= line.error;
      onLine(line);
    }
    if (signal.aborted) throw new EngineError(`pulling ${reference}: given up`);
    if (error !== undefined) throw new EngineError(error.slice(0, 2000), 404);
  }

  async create(name: string, config: unknown): Promise<string> {
    const created = Type.Object({ Id: Type.String({ minLength: 1 }) });
    const call = { method: 'POST', path: '/containers/create', query: { name }, body: config } as const;
    return (await (await this.#http()).json(created, call)).Id;
  }

  start(container: string): Promise<void> {
    return this.#post(pathOf(container, 'start'));
  }

  async kill(container: string, signal: string): Promise<void> {
    try {
      await this.#post(pathOf(container, 'kill'), { signal });
    } catch (error) {
      if (!(error instanceof EngineError) || error.status === undefined) throw error;
      if (error.status === 404 || error.status === 409) return; // it does not exist, or does not run
      if (!/can only kill running containers/i.test(error.message)) throw error; // podman's message, with status 500
    }
  }

  pause(container: string): Promise<void> {
    return this.#post(pathOf(container, 'pause'));
  }

  unpause(container: string): Promise<void> {
    return this.#post(pathOf(container, 'unpause'));
  }

  async remove(container: string): Promise<void> {
    const query = { force: 'true', v: 'true' };
    await orNull((await this.#http()).done({ method: 'DELETE', path: pathOf(container), query }));
  }

  async inspect(container: string): Promise<answers.EngineContainer | null> {
    return orNull((await this.#http()).json(answers.Container, { method: 'GET', path: pathOf(container, 'json') }));
  }

  async stats(container: string): Promise<answers.EngineStats | null> {
    const query = { stream: 'false', 'one-shot': 'true' };
    const call = { method: 'GET', path: pathOf(container, 'stats'), query } as const;
    return orNull((await this.#http()).json(answers.Stats, call));
  }

  async bridge(network: string): Promise<ContainerBridge | null> {
    const path = `/networks/${encodeURIComponent(network)}`;
    const found = await orNull((await this.#http()).json(answers.Network, { method: 'GET', path }));
    if (found === null || found.Driver !== 'bridge') return null;
    const subnets = (found.IPAM.Config ?? []).map(({ Subnet, Gateway }) => ({ subnet: Subnet, gateway: Gateway }));
    const name = found.Options?.['com.docker.network.bridge.name'] ?? (await this.#bridgeName(found.Id, path));
    return { name, subnets };
  }

  /** Only podman's own API tells its name. Docker makes it of the network's id. */
  async #bridgeName(id: string, path: string): Promise<string> {
    if ((await this.version()).kind === 'docker') return `br-${id.slice(0, 12)}`;
    const call = { method: 'GET', path: `/libpod${path}/json` } as const;
    return (await this.#connect('/v4.0.0').json(answers.PodmanNetwork, call)).network_interface;
  }

  async list(label: string): Promise<readonly answers.ListedContainer[]> {
    const query = { all: 'true', filters: JSON.stringify({ label: [label] }) };
    return (await this.#http()).json(answers.Listed, { method: 'GET', path: '/containers/json', query });
  }

  async *logs(container: string, { sinceSeconds, follow, signal }: LogRange): AsyncGenerator<readonly Frame[]> {
    const query = {
      stdout: 'true',
      stderr: 'true',
      timestamps: 'true',
      follow: String(follow),
      ...(sinceSeconds === 0 ? {} : { since: String(sinceSeconds) }),
    };
    const reader = frameReader();
    const call = { method: 'GET', path: pathOf(container, 'logs'), query, signal, timeoutMs: 0 } as const;
    for await (const piece of (await this.#http()).stream(call)) {
      const frames = reader.push(piece);
      if (frames.length > 0) yield frames;
    }
  }

  async *events(sinceSeconds: number, signal: AbortSignal): AsyncGenerator<answers.EngineEvent> {
    const query = { since: String(sinceSeconds), filters: JSON.stringify({ type: ['container'] }) };
    const stream = (await this.#http()).stream({ method: 'GET', path: '/events', query, signal, timeoutMs: 0 });
    for await (const line of jsonLines(stream)) if (Check(answers.Event, line)) yield line;
  }

  async checkHealth(container: string): Promise<void> {
    const path = `/libpod${pathOf(container, 'healthcheck')}`;
    await this.#connect('/v4.0.0').done({ method: 'GET', path });
  }

  async exec(container: string, call: ExecCall): Promise<Execution> {
    return startExecution({ http: await this.#http(), clock: this.#clock, container }, call);
  }

  async look(container: string, path: string): Promise<PathLook | null> {
    const call = { method: 'HEAD', path: pathOf(container, 'archive'), query: { path } } as const;
    const said = await orNull((await this.#http()).header('x-docker-container-path-stat', call));
    if (said === null) return null;
    const stat: unknown = JSON.parse(Buffer.from(said, 'base64').toString());
    if (Check(answers.PathStat, stat)) return kindOf(stat.mode);
    throw new EngineError(`the container engine does not say what is at ${path}`);
  }

  async *archive(container: string, path: string): AsyncGenerator<Buffer> {
    const http = await this.#http();
    yield* http.stream({ method: 'GET', path: pathOf(container, 'archive'), query: { path } });
  }

  async unpack(container: string, path: string): Promise<EngineUpload> {
    return (await this.#http()).upload({ method: 'PUT', path: pathOf(container, 'archive'), query: { path } });
  }

  async #askVersion(): Promise<Static<typeof answers.Version>> {
    const call = { method: 'GET', path: '/version', timeoutMs: versionTimeoutMs } as const;
    const answer = await this.#unversioned.json(answers.Version, call);
    const least = answer.MinAPIVersion ?? apiVersion;
    this.#versioned = this.#connect(`/v${isNewer(least, apiVersion) ? least : apiVersion}`);
    return answer;
  }

  async #http(): Promise<EngineHttp> {
    if (this.#versioned === undefined) await this.#askVersion();
    return this.#versioned ?? this.#unversioned;
  }

  async #post(path: string, query: Readonly<Record<string, string>> = {}): Promise<void> {
    await (await this.#http()).done({ method: 'POST', path, query });
  }
}

/** An AuthConfig of the Docker API, in base64 for URLs (RFC 4648, section 5). */
function registryAuth(reference: string, { username = '', secret: password }: Credential): string {
  const serveraddress = reference.split('/')[0] ?? '';
  const text = Buffer.from(JSON.stringify({ username, password, serveraddress })).toString('base64');
  return text.replaceAll('+', '-').replaceAll('/', '_'); // podman refuses it without its padding
}

/** The mode bits of Go's io/fs. */
const modeBits = { directory: 2 ** 31, link: 2 ** 27, other: 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21 + 2 ** 19 };

function kindOf(mode: number): PathLook {
  const has = (bits: number): boolean => (BigInt(mode) & BigInt(bits)) !== 0n;
  if (has(modeBits.directory)) return 'directory';
  if (has(modeBits.link)) return 'link';
  return has(modeBits.other) ? 'other' : 'file';
}

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
