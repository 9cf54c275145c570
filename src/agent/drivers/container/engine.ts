// The calls of the Docker API that the driver needs, as podman and Docker serve them on a unix socket. engine-client.ts
// carries them out; tests have other implementations.

import type { Credential } from '../../images/credentials/image-credentials.ts';
import type {
  EngineContainer,
  EngineEvent,
  EngineImage,
  EngineStats,
  ListedContainer,
  PullLine,
} from './engine-answers.ts';
import type { ContainerBridge } from '../../network/container-guard.ts';
import type { EngineUpload } from './engine-http.ts';
import type { ExecCall, Execution } from './exec.ts';
import type { Frame } from './frames.ts';

export interface EngineVersion {
  readonly kind: 'podman' | 'docker';
  readonly version: string;
  /** By Go's name: amd64, arm64. */
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
  /** The image that the engine has under this reference; null: none. */
  image(reference: string): Promise<EngineImage | null>;
  /** Resolves when the engine has the image. Throws the registry's message. */
  pull(
    reference: string,
    call: {
      readonly signal: AbortSignal;
      readonly credential?: Credential | undefined;
      onLine(line: PullLine): void;
    },
  ): Promise<void>;
  /** `config` as in `ContainerCreate` of the Docker API. Returns the container's id. */
  create(name: string, config: unknown): Promise<string>;
  /** Does nothing when the container runs. */
  start(container: string): Promise<void>;
  /** Sends a signal. Does nothing when the container does not run. */
  kill(container: string, signal: string): Promise<void>;
  /** Freezes all its processes. Throws when the container does not run, or is paused already. */
  pause(container: string): Promise<void>;
  unpause(container: string): Promise<void>;
  /** Removes the container in any state, with its anonymous volumes. Does nothing when it does not exist. */
  remove(container: string): Promise<void>;
  inspect(container: string): Promise<EngineContainer | null>;
  /** Current usage; null: there is no such container, or it does not run. */
  stats(container: string): Promise<EngineStats | null>;
  /** The bridge of a network; null: there is no such network, or it has another driver. */
  bridge(network: string): Promise<ContainerBridge | null>;
  /** All containers with this label, running or not. */
  list(label: string): Promise<readonly ListedContainer[]>;
  /** Each frame begins with a time and a space; podman's times have whole seconds. */
  logs(container: string, range: LogRange): AsyncGenerator<readonly Frame[]>;
  /** Container events since a time, in seconds since the Unix epoch. Ends with the engine, or with `signal`. */
  events(sinceSeconds: number, signal: AbortSignal): AsyncGenerator<EngineEvent>;
  /** Runs a health check now. podman leaves health checks to systemd, and without systemd makes none. Docker has no such call. */
  checkHealth(container: string): Promise<void>;
  exec(container: string, call: ExecCall): Promise<Execution>;
  /** The kind of file at a path of the container, links not followed; null: nothing is there. */
  look(container: string, path: string): Promise<PathLook | null>;
  /** A file or a directory with its contents, as a tar archive with its own name at the top. */
  archive(container: string, path: string): AsyncGenerator<Buffer>;
  /** Unpacks a tar archive into a directory of the container. */
  unpack(container: string, path: string): Promise<EngineUpload>;
}

export type PathLook = 'file' | 'directory' | 'link' | 'other';
