// Pulls a container image, unless the engine has it already, and returns its id and digest. A tag that the engine has is
// pulled again only where the image says so (pullPolicy).

import { createHash } from 'node:crypto';
import { describeError } from '../../../base/log.ts';
import type { SharedWork } from '../../../base/concurrency/shared-work.ts';
import type { GuestContainer } from '../driver.ts';
import { type Credential, type CredentialFor, withoutSecret } from '../../images/credentials/image-credentials.ts';
import { DriverError } from '../../host/driver-error.ts';
import { referenceText } from './container-config.ts';
import type { Engine } from './engine.ts';
import type { EngineImage, PullLine } from './engine-answers.ts';
import { EngineError } from './engine-http.ts';

export interface PulledImage {
  /** The engine's own. */
  readonly id: string;
  /** Of the manifest in its registry, if known; otherwise of the image's configuration. */
  readonly digest: string;
}

/** Single-flight pulls by reference: an engine that is asked twice at the same time downloads twice. */
export type Pulls = SharedWork<PullLine, void>;

export async function pullImage(
  {
    engine,
    pulls,
    credentialFor,
  }: { readonly engine: Engine; readonly pulls: Pulls; readonly credentialFor: CredentialFor },
  container: GuestContainer,
  call: { readonly signal: AbortSignal; readonly onProgress: (progress: string) => void },
): Promise<PulledImage> {
  const reference = referenceText(container);
  const { imageName } = container;
  const what = `cannot pull image "${imageName}" (${reference})`;
  let image = await engine.image(reference);
  if (image === null || container.image?.pullPolicy === 'Always') {
    const layers = createProgress();
    const caller = {
      signal: call.signal,
      onProgress: (line: PullLine) => call.onProgress(`pulling ${imageName}${layers(line)}`),
    };
    const credential = await credentialFor(container.image?.source ?? '');
    try {
      await pulls.join(flightOf(reference, credential), caller, ({ signal, tell }) =>
        engine.pull(reference, { signal, credential, onLine: tell }),
      );
    } catch (error) {
      throw pullError(error, { what, credential });
    }
    if (call.signal.aborted) throw new DriverError('Aborted', `${what}: it was given up`);
    image = await engine.image(reference);
    if (image === null) throw new DriverError('ImageUnavailable', `${what}: the engine pulled it and has it not`);
  }
  const wanted = container.image?.architecture;
  if (wanted !== undefined && image.Architecture !== wanted)
    throw new DriverError(
      'ImageInvalid',
      `cannot run image "${imageName}": it is for ${image.Architecture}, and should be for ${wanted}`,
    );
  return { id: image.Id, digest: digestOf(image, reference) };
}

/** A pull with one credential is not for those who have another. */
function flightOf(reference: string, credential: Credential | undefined): string {
  if (credential === undefined) return reference;
  return `${reference} ${createHash('sha256').update(JSON.stringify(credential)).digest('hex')}`;
}

function pullError(
  error: unknown,
  { what, credential }: { readonly what: string; readonly credential: Credential | undefined },
): DriverError {
  const said = withoutSecret(describeError(error), credential);
  if (error instanceof EngineError && error.status === undefined)
    return new DriverError('ContainerEngineFailed', `${what}: ${said}`);
  const full = /no space left on device|disk quota exceeded/i.test(said);
  return new DriverError(full ? 'DiskFull' : 'ImageUnavailable', `${what}: ${said}`);
}

function digestOf({ Id, RepoDigests }: EngineImage, reference: string): string {
  const repository = reference.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  const found = RepoDigests?.find((each) => each.startsWith(`${repository}@`)) ?? RepoDigests?.[0];
  if (found !== undefined) return found.slice(found.indexOf('@') + 1);
  return Id.startsWith('sha256:') ? Id : `sha256:${Id}`;
}

const layersMax = 512; // no image has more, and a registry may send any number

/** The percentage done of all layers reported so far. */
function createProgress(): (line: PullLine) => string {
  const layers = new Map<string, { readonly done: number; readonly all: number }>();
  return ({ id, progressDetail }) => {
    const { current, total } = progressDetail ?? {};
    if (id !== undefined && current !== undefined && total !== undefined && total > 0) {
      if (layers.has(id) || layers.size < layersMax) layers.set(id, { done: Math.min(current, total), all: total });
    }
    let [done, all] = [0, 0];
    for (const layer of layers.values()) {
      done += layer.done;
      all += layer.all;
    }
    return all === 0 ? '' : `: ${Math.floor((100 * done) / all)} %`;
  };
}
