// What users do with secrets. The values are in a record of their own, which is no resource: nothing that shows
// resources can show a value.

import { ApiError } from '../../api/errors.ts';
import { type Secret, type SecretSpec, type SecretStatus, secretValuesMax } from '../../api/resources/secret.ts';
import { equalJson } from '../../base/equal-json.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { SecretValues } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { schemaVersion } from '../state/upgrade.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import { alreadyDone, type Decision } from './decision.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from './replace.ts';
import { usersOfSecret } from './secret-references.ts';

/** As JSON; a commit of a store has room for many. */
const valuesBytesMax = 256 * 1024;

export function createSecret(snapshot: Snapshot, input: CreateInput<SecretSpec>, ctx: Context): Decision {
  const withoutValues = { ...input, spec: { ...input.spec, values: Object.keys(input.spec.values ?? {}) } };
  const earlier = earlierCreate(snapshot, withoutValues, 'secret');
  if (earlier) return earlier;
  assertEncrypted(snapshot);
  const key = keys.secret(input.project, input.name);
  assertFree(snapshot, 'secret', key, input.name);
  const metadata = newMetadata(ctx.newId('secret'), input, ctx);
  const before: Values = { status: { version: 0, keys: {} }, values: {} };
  const { status, values } = withValues(before, input.spec.values, ctx);
  const { description } = input.spec;
  const secret: Secret = { kind: 'secret', schemaVersion, metadata, spec: { description }, status };
  const valuesEntry = valuesOf(snapshot, input);
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: secret },
        valuesChange(input, { id: metadata.id, values, ifRevision: valuesEntry?.revision ?? 0 }),
        ...rememberCreate(withoutValues, 'secret', { key, id: metadata.id }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

export function replaceSecret(snapshot: Snapshot, input: ReplaceInput<SecretSpec>, ctx: Context): Decision {
  const key = keys.secret(input.project, input.name);
  const entry = existing(snapshot, 'secret', key, input.ifRevision);
  const current = entry.value;
  const stored = valuesOf(snapshot, input);
  const before: Values = { status: current.status, values: stored?.value.values ?? {} };
  const { status, values } = withValues(before, input.spec.values, ctx);
  const { description } = input.spec;
  const specChanged = description !== current.spec.description || status.version !== current.status.version;
  if (!specChanged && equalJson(current.metadata.labels, input.labels)) return alreadyDone(entry);
  const metadata = replacedMetadata(current.metadata, { labels: input.labels, specChanged });
  const secret: Secret = { ...current, metadata, spec: { description }, status };
  const change = valuesChange(input, { id: metadata.id, values, ifRevision: stored?.revision ?? 0 });
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: secret },
        ...(status.version === current.status.version ? [] : [change]),
      ],
    },
    key,
    changed: true,
  };
}

/** Throws `Conflict` while an instance or a job uses it, unless `force` is set. */
export function deleteSecret(snapshot: Snapshot, input: DeleteInput & { readonly force: boolean }): Decision {
  const key = keys.secret(input.project, input.name);
  const entry = existing(snapshot, 'secret', key, input.ifRevision);
  const [user, ...more] = input.force ? [] : usersOfSecret(snapshot, input);
  if (user !== undefined)
    throw new ApiError(
      'Conflict',
      `secret "${input.name}" is used by ${user}${more.length > 0 ? ` and ${more.length} more` : ''}: remove that first, or delete the secret with force, and it starts no more`,
    );
  const values = valuesOf(snapshot, input);
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: null },
        ...(values ? [{ key: values.key, ifRevision: values.revision, value: null }] : []),
      ],
    },
    key,
    changed: true,
  };
}

/** A data key exists exactly when the servers have a master key. */
function assertEncrypted(snapshot: Snapshot): void {
  if (snapshot.count('dataKey') > 0) return;
  throw new ApiError(
    'Unavailable',
    'secrets cannot be created: the servers have no master key to encrypt them with; set masterKeyFile on all servers',
  );
}

interface Values {
  readonly status: SecretStatus;
  readonly values: Readonly<Record<string, string>>;
}

function withValues(before: Values, wanted: SecretSpec['values'], { nowMs }: Context): Values {
  const values: Record<string, string> = { ...before.values };
  const times: Record<string, { readonly updatedAtMs: number }> = { ...before.status.keys };
  let changed = false;
  for (const [name, value] of Object.entries(wanted ?? {})) {
    if (value === null ? values[name] === undefined : values[name] === value) continue;
    changed = true;
    if (value === null) {
      delete values[name];
      delete times[name];
    } else {
      values[name] = value;
      times[name] = { updatedAtMs: nowMs };
    }
  }
  if (!changed) return before;
  assertSize(values);
  return { values, status: { version: before.status.version + 1, keys: times } };
}

function assertSize(values: Readonly<Record<string, string>>): void {
  const field = 'spec.values';
  const count = Object.keys(values).length;
  if (count > secretValuesMax)
    throw new ApiError('InvalidRequest', `spec.values: a secret has ${secretValuesMax} values at most`, { field });
  if (JSON.stringify(values).length > valuesBytesMax)
    throw new ApiError('InvalidRequest', `spec.values: the values are larger than ${valuesBytesMax} bytes together`, {
      field,
    });
}

function valuesOf(
  snapshot: Snapshot,
  { project, name }: { readonly project: string; readonly name: string },
): Entry<SecretValues> | undefined {
  return snapshot.get('secretValues', keys.secretValues(project, name));
}

function valuesChange(
  { project, name }: { readonly project: string; readonly name: string },
  {
    id,
    values,
    ifRevision,
  }: { readonly id: string; readonly values: SecretValues['values']; readonly ifRevision: number },
) {
  const value: SecretValues = { kind: 'secretValues', project, name, secretId: id, values };
  return { key: keys.secretValues(project, name), ifRevision, value };
}
