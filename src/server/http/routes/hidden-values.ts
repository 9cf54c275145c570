// Values that were hidden from a reader, when they come back: a resource may be sent back as it was read, and then keeps them. No hidden
// value gets into another place by this, and the word that stands for one is never stored.

import { ApiError } from '../../../api/errors.ts';
import type { AnyResource } from '../../../api/resources/index.ts';
import { isRecord } from '../../../base/is-record.ts';
import { hiddenValue } from './without-secrets.ts';

/** The fields of a spec in which values are hidden, at any depth. */
const fields = ['userData', 'script', 'env', 'run', 'containers', 'template', 'parameters'] as const;

/**
 * `sent`, with each hidden value as `before` has it in the same place. Throws `InvalidRequest` where it has none. `before` undefined: the
 * resource is new.
 */
export function withHiddenKept(sent: unknown, before: AnyResource | undefined): unknown {
  if (!isRecord(sent)) return sent;
  const kept = { ...sent };
  for (const field of fields)
    if (field in kept) kept[field] = keptIn(kept[field], fieldOf(before?.spec, field), `spec.${field}`);
  return kept;
}

function keptIn(sent: unknown, had: unknown, place: string): unknown {
  if (sent === hiddenValue) {
    if (typeof had === 'string' && had !== '') return had;
    const message = `"${hiddenValue}" stands for a value that is there already, and here is none; give the value, or leave it out`;
    throw new ApiError('InvalidRequest', message, { field: place });
  }
  if (Array.isArray(sent))
    return sent.map((each, i) => keptIn(each, counterpart(each, i, { sent, had }), `${place}[${i}]`));
  if (!isRecord(sent)) return sent;
  return Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [name, keptIn(value, fieldOf(had, name), `${place}.${name}`)]),
  );
}

/** Containers have names; words of a command have their place in as many. */
function counterpart(
  each: unknown,
  index: number,
  { sent, had }: { readonly sent: readonly unknown[]; readonly had: unknown },
): unknown {
  if (!Array.isArray(had)) return undefined;
  const all: readonly unknown[] = had;
  if (isRecord(each)) return all.find((other) => fieldOf(other, 'name') === each['name']);
  return all.length === sent.length ? all[index] : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
