// Finds the socket of the container engine: from the configuration, from DOCKER_HOST, or at the engines' usual paths. Never over
// a network: access to an engine is root access to its host.

import { access } from 'node:fs/promises';

const engineSockets = ['/run/podman/podman.sock', '/var/run/docker.sock'] as const;

export interface EngineSocketOptions {
  /** A path, or `unix://` and a path. */
  readonly configured?: string | undefined;
  /** From the environment, as for Docker's own tools. */
  readonly dockerHost?: string | undefined;
}

export type FoundSocket = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly fault: string };

export async function findEngineSocket({ configured, dockerHost }: EngineSocketOptions): Promise<FoundSocket> {
  const [named, by] = configured === undefined ? [dockerHost, 'DOCKER_HOST'] : [configured, 'containerEngine'];
  if (named !== undefined && named !== '') {
    const path = named.startsWith('unix://') ? named.slice('unix://'.length) : named;
    return path.startsWith('/')
      ? { ok: true, path }
      : { ok: false, fault: `${by} is "${named}": the engine is spoken to by a unix socket only; write unix:///PATH` };
  }
  for (const path of engineSockets) {
    const there = await access(path).then(
      () => true,
      () => false,
    );
    if (there) return { ok: true, path };
  }
  return {
    ok: false,
    fault: `no container engine is here: neither ${engineSockets.join(' nor ')} exists; install podman or Docker, or set containerEngine`,
  };
}
