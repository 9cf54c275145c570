// Instances as lists and watches show them: without their user-data, and without the environments and the words of the commands of their
// containers, which may be secrets.
// Whoever wants those asks for the one instance.

import type { AnyResource } from '../../../api/resources/index.ts';
import type { Instance } from '../../../api/resources/instance.ts';

/** Stands for a value. */
export const hiddenValue = '(hidden)';

export function withoutSecrets(resource: AnyResource): AnyResource {
  if (resource.kind !== 'instance') return resource;
  return resource.spec.containers === undefined && resource.spec.userData === '' ? resource : hidden(resource);
}

function hidden(instance: Instance): Instance {
  const containers = instance.spec.containers?.map((container) => ({
    ...container,
    ...(container.command === undefined ? {} : { command: container.command.map(() => hiddenValue) }),
    ...(container.args === undefined ? {} : { args: container.args.map(() => hiddenValue) }),
    env: Object.fromEntries(Object.keys(container.env).map((name) => [name, hiddenValue])),
  }));
  const userData = instance.spec.userData === '' ? '' : hiddenValue;
  return { ...instance, spec: { ...instance.spec, userData, ...(containers === undefined ? {} : { containers }) } };
}

const containersMarker = Buffer.from('"containers":[');
const userDataMarker = Buffer.from('"userData":"');
const quote = 0x22;

/** Whether a stored instance may have what is hidden: a look at its bytes, for most have nothing. */
export function mayHoldSecrets(key: string, stored: Uint8Array): boolean {
  if (!key.startsWith('instances/')) return false;
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const at = bytes.indexOf(userDataMarker);
  return (at >= 0 && bytes[at + userDataMarker.length] !== quote) || bytes.includes(containersMarker);
}
