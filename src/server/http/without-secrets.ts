// Instances as lists and watches show them: without the values of their containers' environments, which may be secrets. Whoever wants those
// asks for the one instance.

import type { AnyResource } from '../../api/resources/index.ts';
import type { Instance } from '../../api/resources/instance.ts';

/** Stands for a value. */
export const hiddenValue = '(hidden)';

export function withoutSecrets(resource: AnyResource): AnyResource {
  return resource.kind === 'instance' && resource.spec.containers !== undefined ? hidden(resource) : resource;
}

function hidden(instance: Instance): Instance {
  const containers = instance.spec.containers?.map((container) => ({
    ...container,
    env: Object.fromEntries(Object.keys(container.env).map((name) => [name, hiddenValue])),
  }));
  return { ...instance, spec: { ...instance.spec, ...(containers === undefined ? {} : { containers }) } };
}

const marker = Buffer.from('"containers":[');

/** Whether a stored instance may have what is hidden: a look at its bytes, for most have nothing. */
export function mayHoldSecrets(key: string, stored: Uint8Array): boolean {
  return (
    key.startsWith('instances/') && Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).includes(marker)
  );
}
