// Some of the agents of store-herd.ts, in a process of their own: registration, heartbeats on one connection, the stream of assignments on
// another, each opened again when it breaks, after the same delays as src/agent/agent.ts. What the streams order is not done.

import { connect, type Socket } from 'node:net';
import { benchAgentId } from './agent-client.ts';
import { backoffMs, type BackoffOptions } from '../src/base/backoff.ts';
import { seededPrng } from '../src/base/prng.ts';

export interface HerdInput {
  readonly url: string;
  readonly heartbeatMs: number;
  readonly agents: readonly { readonly name: string; readonly token: string }[];
}

/** Every agent has had a heartbeat accepted and its stream's first sync, since the server was last lost. */
export interface HerdMessage {
  readonly type: 'complete';
}

const registerRetry: BackoffOptions = { delayMsMin: 500, delayMsMax: 30_000 };
const watchRetry: BackoffOptions = { delayMsMin: 200, delayMsMax: 5_000 };
const watchSettledAfterMs = 10_000;
/** Registrations under way at a time: a fleet grows host by host, and its growth is not what is measured. */
const joiningMax = 50;
const prng = seededPrng(process.pid);

process.once('disconnect', () => process.exit(0));
process.once('message', (input: HerdInput) => run(input));

function run({ url, heartbeatMs, agents }: HerdInput): void {
  const { hostname, port, host: authority } = new URL(url);
  const heartbeatRetry: BackoffOptions = { delayMsMin: 500, delayMsMax: heartbeatMs };
  const heartbeating = new Set<string>();
  const synced = new Set<string>();
  let told = false;
  const look = (): void => {
    const complete = heartbeating.size === agents.length && synced.size === agents.length;
    if (complete && !told) process.send?.({ type: 'complete' } satisfies HerdMessage);
    if (complete) told = true;
    else if (heartbeating.size === 0 && synced.size === 0) told = false;
  };
  const dial = (): Socket => connect({ host: hostname, port: Number(port), noDelay: true });
  const head = (method: string, path: string, token: string): string =>
    `${method} ${path} HTTP/1.1\r\nhost: ${authority}\r\nauthorization: Bearer ${token}\r\n`;

  /** One connection that answers one request at a time; `lost` is called once, when it is over. */
  const line = (lost: () => void) => {
    const socket = dial();
    let answered: ((status: number, body: string) => void) | undefined;
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (piece: string) => {
      text += piece;
      const bodyAt = text.indexOf('\r\n\r\n') + 4;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN);
      if (bodyAt < 4 || Number.isNaN(length) || text.length < bodyAt + length) return;
      const [status, body] = [Number(text.slice(9, 12)), text.slice(bodyAt, bodyAt + length)];
      text = '';
      answered?.(status, body);
    });
    socket.on('error', () => {}); // `close` follows
    socket.once('close', lost);
    return {
      ask(method: string, path: string, token: string, body: unknown, then: typeof answered): void {
        answered = then;
        const json = JSON.stringify(body);
        socket.write(
          `${head(method, path, token)}content-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n${json}`,
        );
      },
      close: () => socket.destroy(),
    };
  };

  const join = (name: string, token: string, attempt: number, joined: (epoch: number) => void): void => {
    const again = (): void => {
      setTimeout(() => join(name, token, attempt + 1, joined), backoffMs(attempt, registerRetry, prng));
    };
    let done = false;
    const connection = line(() => done || again());
    const registration = {
      session: `herd-${name}-${process.pid}`,
      machineId: `machine-${name}`,
      agentId: benchAgentId,
      bootId: 'bench',
      architecture: 'amd64',
      capacity: { VCPU: 256, MEMORY_MB: 262_144, DISK_GB: 4_000 },
      reserved: { MEMORY_MB: 1_024 },
      labels: {},
      drivers: [{ name: 'fake', available: true }],
      images: [],
      agentVersion: 'bench',
    };
    connection.ask('PUT', `/v1/hosts/${name}/session`, token, registration, (status, body) => {
      if (status !== 200) return connection.close();
      done = true;
      const session: { epoch: number } = JSON.parse(body);
      joined(session.epoch);
      heartbeat(name, token, { epoch: session.epoch, attempt: 0, connection });
      watch(name, token, session.epoch, 0);
    });
  };

  const heartbeat = (
    name: string,
    token: string,
    { epoch, attempt, connection }: { epoch: number; attempt: number; connection?: ReturnType<typeof line> },
  ): void => {
    let tries = attempt;
    const lost = (): void => {
      heartbeating.delete(name);
      look();
      setTimeout(() => heartbeat(name, token, { epoch, attempt: tries + 1 }), backoffMs(tries, heartbeatRetry, prng));
    };
    // The connection that it was registered on is closed, as real agents' are after a few seconds.
    connection?.close();
    const own = line(lost);
    const beat = (): void =>
      own.ask('POST', `/v1/hosts/${name}/heartbeat`, token, { epoch }, (status, body) => {
        if (status === 409) throw new Error(`host ${name} lost its session: ${body}`);
        if (status !== 200) return own.close();
        tries = 0;
        heartbeating.add(name);
        look();
        setTimeout(beat, heartbeatMs);
      });
    beat();
  };

  const watch = (name: string, token: string, epoch: number, attempt: number): void => {
    const beganAt = performance.now();
    const socket = dial();
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      if (!text.includes('"type":"sync"')) return;
      synced.add(name);
      look();
    });
    socket.on('error', () => {}); // `close` follows
    socket.once('close', () => {
      synced.delete(name);
      look();
      const next = performance.now() - beganAt >= watchSettledAfterMs ? 0 : attempt;
      setTimeout(() => watch(name, token, epoch, next + 1), backoffMs(next, watchRetry, prng));
    });
    socket.write(`${head('GET', `/v1/hosts/${name}/assignments?epoch=${epoch}`, token)}\r\n`);
  };

  let next = 0;
  const one = (): void => {
    const agent = agents[next++];
    if (agent) join(agent.name, agent.token, 0, one);
  };
  for (let i = 0; i < joiningMax; i++) one();
}
