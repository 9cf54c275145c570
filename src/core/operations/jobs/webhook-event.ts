// What the body of a webhook says, for the two events that become jobs. Pure. The signature has been checked before; still
// nothing in a body decides where a token is sent (webhook.ts compares the clone URL with the configured forge).

import { ApiError } from '../../../api/errors.ts';
import { isRecord } from '../../../base/is-record.ts';

export type Forge = 'github' | 'forgejo';
export type ForgeEventName = 'push' | 'pull_request';

export interface ForgeEvent {
  readonly event: ForgeEventName;
  /** `opened`, `labeled`; empty for a push. */
  readonly action: string;
  /** OWNER/NAME. */
  readonly repository: string;
  readonly repositoryId: string;
  readonly cloneUrl: string;
  /** `refs/heads/main`, or `refs/pull/7/head`. */
  readonly ref: string;
  /** The branch that rules name: the one pushed to, or the one to merge into. */
  readonly branch: string;
  /** What `ref` was before, and what it is now. */
  readonly before: string | undefined;
  readonly sha: string;
  /** Whether `before` says what came before: false where the forge sends none of an event that has one. */
  readonly chained: boolean;
  readonly forced: boolean;
  /** A pull request from another repository, or from one that is gone. */
  readonly fork: boolean;
  /** The label that was added by this event. */
  readonly label: string | undefined;
  /** The changed files; undefined: the body does not list all of them. */
  readonly paths: readonly string[] | undefined;
}

/** Why an event asks for nothing. */
export interface Ignored {
  readonly ignored: string;
}

const shaPattern = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
const zeros = /^0+$/;
const repositoryPattern = /^(?!\.{1,2}\/)[A-Za-z0-9._-]{1,100}\/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;
const refPattern = /^[^\u0000-\u0020\u007f~^:?*[\\]{1,1024}$/;
const branchPrefix = 'refs/heads/';

/** Throws `InvalidRequest` with the field that is missing or of another form. */
export function readEvent(forge: Forge, event: ForgeEventName, body: unknown): ForgeEvent | Ignored {
  if (!isRecord(body)) throw new ApiError('InvalidRequest', 'the body must be a JSON object', { field: 'body' });
  return event === 'push' ? readPush(forge, body) : readPullRequest(body);
}

type Body = Readonly<Record<string, unknown>>;

function readPush(forge: Forge, body: Body): ForgeEvent | Ignored {
  const ref = text(body, 'ref', refPattern);
  const after = text(body, 'after', shaPattern);
  const before = text(body, 'before', shaPattern);
  const repository = repositoryOf(body);
  if (zeros.test(after) || body['deleted'] === true) return { ignored: 'the branch was deleted' };
  if (!ref.startsWith(branchPrefix)) return { ignored: 'only branches become jobs' };
  const created = zeros.test(before);
  const forced = body['forced'] === true;
  return {
    event: 'push',
    action: '',
    ...repository,
    ref,
    branch: ref.slice(branchPrefix.length),
    before: created ? undefined : before,
    sha: after,
    chained: true,
    forced,
    fork: false,
    label: undefined,
    // Commits that were on another branch already, or that were dropped, are not in the list.
    paths: created || forced ? undefined : pathsOf(forge, body),
  };
}

/** GitHub cuts the list at 2,048 commits (20 in earlier versions of its server) without saying so. */
const cutLengths: ReadonlySet<number> = new Set([20, 2048]);
/** As many as are compared with the patterns of rules; a longer list counts as cut. */
const pathsMax = 20_000;

/** Undefined where the body lists only some of the commits, or only some files of one. */
function pathsOf(forge: Forge, body: Body): readonly string[] | undefined {
  const { commits, total_commits: total } = body;
  if (!Array.isArray(commits) || commits.length === 0) return undefined;
  if (typeof total === 'number' ? total > commits.length : forge === 'forgejo' || cutLengths.has(commits.length))
    return undefined;
  const paths = new Set<string>();
  for (const commit of commits) {
    if (!isRecord(commit)) return undefined;
    for (const list of [commit['added'], commit['modified'], commit['removed']]) {
      if (!Array.isArray(list)) return undefined;
      for (const path of list) if (typeof path === 'string') paths.add(path);
    }
    if (paths.size > pathsMax) return undefined;
  }
  return [...paths];
}

/** Forgejo has another word for the same. */
const actions: ReadonlySet<string> = new Set(['opened', 'reopened', 'synchronize', 'synchronized', 'labeled']);

function readPullRequest(body: Body): ForgeEvent | Ignored {
  const action = text(body, 'action', /^[a-z_]{1,64}$/);
  if (!actions.has(action)) return { ignored: `the action ${action} asks for nothing` };
  const number = body['number'];
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 1)
    throw new ApiError('InvalidRequest', 'number must be the number of the pull request', { field: 'number' });
  const repository = repositoryOf(body);
  const sha = text(body, 'pull_request.head.sha', shaPattern);
  const branch = text(body, 'pull_request.base.ref', refPattern);
  const before = optional(body, 'before', shaPattern);
  return {
    event: 'pull_request',
    action,
    ...repository,
    ref: `refs/pull/${number}/head`,
    branch,
    before: before === undefined || zeros.test(before) ? undefined : before,
    sha,
    chained: action === 'opened' || before !== undefined,
    forced: false,
    fork: idOf(body, 'pull_request.head.repo') !== repository.repositoryId,
    label: action === 'labeled' ? text(body, 'label.name', /^[^\u0000-\u001f]{1,100}$/) : undefined,
    paths: undefined,
  };
}

function repositoryOf(body: Body): Pick<ForgeEvent, 'repository' | 'repositoryId' | 'cloneUrl'> {
  const repositoryId = idOf(body, 'repository');
  if (repositoryId === undefined) throw wrong('repository.id', 'must be a whole number');
  return {
    repository: text(body, 'repository.full_name', repositoryPattern),
    repositoryId,
    cloneUrl: text(body, 'repository.clone_url', /^https?:\/\/[^\s@?#\u0000-\u001f]{1,2000}$/),
  };
}

/** The id of the repository in a field; undefined: it is null, for a repository that is gone. */
function idOf(body: Body, field: string): string | undefined {
  const id = at(body, `${field}.id`);
  return typeof id === 'number' && Number.isSafeInteger(id) && id > 0 ? String(id) : undefined;
}

function text(body: Body, field: string, pattern: RegExp): string {
  const value = at(body, field);
  if (value === undefined) throw wrong(field, 'is missing');
  if (typeof value !== 'string' || !pattern.test(value)) throw wrong(field, 'is not of the form that forges send');
  return value;
}

function optional(body: Body, field: string, pattern: RegExp): string | undefined {
  return at(body, field) === undefined ? undefined : text(body, field, pattern);
}

function wrong(field: string, why: string): ApiError {
  return new ApiError('InvalidRequest', `${field} ${why}`, { field });
}

function at(body: Body, field: string): unknown {
  let value: unknown = body;
  for (const name of field.split('.')) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}

/**
 * What identifies an event without its delivery id, which is not signed: with it a captured body that is sent again
 * under another id is recognized.
 */
export function identityOf(hook: string, event: ForgeEvent): string {
  const { event: name, action, repositoryId, ref, before, sha } = event;
  return JSON.stringify([hook, name, action, repositoryId, ref, before ?? '', sha, event.label ?? '']);
}
