// What the ID token of a person says of them: the groups, and a name to show. Who they are is issuer and subject, and nothing
// else: names and addresses of mail can be taken over by others.

import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';
import { type Claims, quoted, refused } from './id-token.ts';

const groupsMax = 1_000;
const groupCharactersMax = 255;

/** Throws `Forbidden` when the provider left the groups out, and `Unauthenticated` when they are of an unknown form. */
export function groupsOf(claims: Claims, path: string | undefined): readonly string[] {
  if (path === undefined) return [];
  const value = at(claims, path);
  if (value === undefined || value === null) {
    if (hasOverage(claims, path)) throw tooManyGroups(path);
    return [];
  }
  const groups = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(groups) || groups.length > groupsMax)
    throw refused(`its claim ${path} is not a list of up to ${groupsMax} groups`);
  return [...new Set(groups.map((group) => checkedGroup(group, path)))];
}

function checkedGroup(group: unknown, path: string): string {
  if (typeof group === 'string' && group.length <= groupCharactersMax && /^[^\u0000-\u001f\u007f]+$/.test(group))
    return group;
  throw refused(`its claim ${path} has a group that is not 1 to ${groupCharactersMax} printable characters`);
}

/** Entra leaves out the groups of users with more than 200 of them, and names a place to ask instead. */
function hasOverage(claims: Claims, path: string): boolean {
  const names = claims['_claim_names'];
  const [first = path] = path.split('.');
  const elsewhere = isRecord(names) && (Object.hasOwn(names, path) || Object.hasOwn(names, first));
  return elsewhere || claims['hasgroups'] === true || claims['hasgroups'] === 'true';
}

function tooManyGroups(path: string): ApiError {
  return new ApiError(
    'Forbidden',
    `the provider left ${path} out of the ID token, because this user is in too many groups; let it send only the groups that are assigned to the application`,
    { details: { reason: 'GroupOverage' } },
  );
}

/** Marks by which CI systems describe a job. Their tokens may have groups, and any audience that a job asks for. */
const jobClaims = ['repository_id', 'project_id', 'job_id', 'pipeline_id', 'run_id', 'event_name', 'pipeline_source'];

/** Throws `Unauthenticated` for a token of a CI system: it is no login of a person. */
export function refuseJobs(claims: Claims): void {
  const mark = jobClaims.find((claim) => Object.hasOwn(claims, claim));
  if (mark !== undefined) throw refused(`it is of a CI job (${mark}), and its audience is that of people`);
}

/** To be shown: it gives no rights, and may be the same for two users. */
export function displayNameOf(claims: Claims, path: string): string {
  const texts = [at(claims, path), claims['email'], claims.sub];
  for (const text of texts) {
    if (typeof text !== 'string') continue;
    const name = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '').trim();
    if (name !== '') return name.slice(0, 128);
  }
  return quoted(claims.sub);
}

/** A claim of this name, even with dots, or else the value at the path. */
function at(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let place: unknown = claims;
  for (const name of path.split('.')) {
    if (!isRecord(place) || !Object.hasOwn(place, name)) return undefined;
    place = place[name];
  }
  return place;
}
