// Which secrets a spec names, and their values. A value is looked up when it is sent to the host of a guest, never when
// something is shown.

import { ApiError } from '../../api/errors.ts';
import { readImagePrefix } from '../../api/images/image-prefix.ts';
import type { Env } from '../../api/resources/container.ts';
import type { ImageCredential } from '../../api/resources/image-credential.ts';
import type { SecretReference } from '../../api/resources/secret.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

export interface NamedSecret extends SecretReference {
  /** That names it, as `spec.run.env.TOKEN`. */
  readonly field: string;
}

/** The parts of the spec of an instance or a job that may name secrets. */
export interface NamingSpec {
  readonly env?: Env;
  readonly run?: { readonly env: Env } | undefined;
  readonly containers?: readonly { readonly env: Env }[] | undefined;
  readonly imageCredentials?: readonly ImageCredential[] | undefined;
}

/** Every value of a secret that the spec of an instance or a job names. */
export function secretsNamedBy(spec: NamingSpec): NamedSecret[] {
  const { env, run, containers, imageCredentials } = spec;
  return [
    ...namedIn(env, 'spec.env'),
    ...namedIn(run?.env, 'spec.run.env'),
    ...(containers ?? []).flatMap((container, i) => namedIn(container.env, `spec.containers[${i}].env`)),
    ...(imageCredentials ?? []).map(({ secret, key }, i) => ({ secret, key, field: `spec.imageCredentials[${i}]` })),
  ];
}

function namedIn(env: Env | undefined, at: string): NamedSecret[] {
  const named: NamedSecret[] = [];
  for (const name in env) {
    const value = env[name];
    if (typeof value === 'object') named.push({ ...value, field: `${at}.${name}` });
  }
  return named;
}

/**
 * Throws `InvalidRequest` for a secret that is not in the project, a value that it does not have, or a credential that could not be used.
 */
export function assertSecretsExist(snapshot: Snapshot, project: string, spec: NamingSpec): void {
  for (const [i, credential] of (spec.imageCredentials ?? []).entries()) {
    const [field, fault] = faultOf(credential) ?? [];
    if (fault === undefined) continue;
    const at = `spec.imageCredentials[${i}].${field}`;
    throw new ApiError('InvalidRequest', `${at}: ${fault}`, { field: at });
  }
  assertNamedExist(snapshot, project, secretsNamedBy(spec));
}

/** The same for references of other kinds of resources. */
export function assertNamedExist(snapshot: Snapshot, project: string, named: readonly NamedSecret[]): void {
  for (const { secret, key, field } of named) {
    const found = snapshot.get('secret', keys.secret(project, secret))?.value;
    if (!found)
      throw new ApiError(
        'InvalidRequest',
        `${field}: there is no secret "${secret}" in project "${project}"; "berth secret ls" lists them`,
        { field },
      );
    if (found.status.keys[key] === undefined) {
      const names = Object.keys(found.status.keys).join(', ');
      throw new ApiError(
        'InvalidRequest',
        `${field}: secret "${secret}" has no value "${key}"${names === '' ? '' : `; it has ${names}`}`,
        { field },
      );
    }
  }
}

function faultOf({ prefix, username }: ImageCredential): readonly [field: string, fault: string] | undefined {
  const read = readImagePrefix(prefix);
  if (!read.ok) return ['prefix', `this is no prefix of images: ${read.fault}`];
  if (read.place.inClear) return ['prefix', `${prefix} is plain HTTP to another machine; use https:`];
  if (read.place.protocol === 'registry' && username === undefined)
    return ['username', 'a registry takes a user name with the password, also with a token in its place; set username'];
  return undefined;
}

/** The values of a secret; undefined: there is none. */
export type SecretByName = (project: string, name: string) => Readonly<Record<string, string>> | undefined;

/** By secret and key: the values that a spec names, as far as they exist. */
export function secretValuesFor(
  project: string,
  spec: NamingSpec,
  secretByName: SecretByName,
): Record<string, Record<string, string>> | undefined {
  let found: Record<string, Record<string, string>> | undefined;
  for (const { secret, key } of secretsNamedBy(spec)) {
    found ??= {};
    const value = secretByName(project, secret)?.[key];
    if (value !== undefined) (found[secret] ??= {})[key] = value;
  }
  return found;
}

/** What uses a secret, for people: instances that still exist and jobs that have not ended. */
export function usersOfSecret(
  snapshot: Snapshot,
  { project, name }: { readonly project: string; readonly name: string },
): string[] {
  const users: string[] = [];
  const names = (spec: NamingSpec): boolean => secretsNamedBy(spec).some(({ secret }) => secret === name);
  for (const { value } of snapshot.list('instance'))
    if (value.metadata.project === project && names(value.spec)) users.push(`instance "${value.metadata.name}"`);
  for (const { value } of snapshot.list('job'))
    if (value.metadata.project === project && value.status.endedAtMs === undefined && names(value.spec))
      users.push(`job "${value.metadata.name}"`);
  for (const { value } of snapshot.list('webhook'))
    if (value.metadata.project === project && value.spec.secrets.some(({ secret }) => secret === name))
      users.push(`webhook "${value.metadata.name}"`);
  return users;
}
