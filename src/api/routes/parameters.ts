// Parameters of several routes, each documented once.

import { Type } from 'typebox';

const optionalText = (description: string) => Type.Optional(Type.String({ description }));

/** Parameters of the path, by name. */
export const pathParameters = {
  name: Type.String({ description: 'name or id' }),
  host: Type.String({ description: 'name of the host' }),
  provider: Type.String({ description: 'name or UUID of the provider' }),
  project: Type.String({ description: 'name of the project' }),
  hook: Type.String({ description: "name of the hook in the server's configuration" }),
  hex: Type.String({ description: 'SHA-256 of the file' }),
  spare: Type.String({ description: 'as "spare_id" of the answer had it' }),
  task: Type.String({ description: 'as "task_id" of the answer had it' }),
  event: Type.String({ description: 'id of the event' }),
  file: Type.String({ description: 'name of the file' }),
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: 'of the guest' }),
  part: Type.Enum(['log', 'artifacts'], { description: 'log, or artifacts as a tar archive' }),
} as const;

/** Parameters of the query. A route uses the value itself, not a copy. */
export const queryParameters = {
  project: Type.String({ default: 'default', description: 'project of the resource' }),
  ofProject: optionalText('only of this project'),
  continue: optionalText('token returned with the previous page'),
  pageLimit: Type.Integer({ minimum: 1, maximum: 5000, default: 500, description: 'items per page' }),
  hostLimit: Type.Integer({
    minimum: 0,
    maximum: 5000,
    default: 20,
    description: 'hosts that are listed individually',
  }),
  hostOffset: Type.Integer({
    minimum: 0,
    maximum: 2 ** 31,
    default: 0,
    description: 'the `continue` token of the previous page',
  }),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2 ** 31,
      description: 'skip this many, instead of `continue`; the answer has the `total`',
    }),
  ),
  order: Type.Enum(['name', 'newest'], { default: 'name', description: '`newest` requires `offset`' }),
  words: Type.Optional(
    Type.String({
      maxLength: 4096,
      description:
        'parts of names; exact: `project=a`, `host=h1`, `image=i`, `state=Running`, `label=value`, `label!=value`',
    }),
  ),
  selector: optionalText('`tier=web,zone!=a,gpu,!old`'),
  watch: Type.Boolean({ default: false, description: 'stream every change after `revision`' }),
  revision: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'for a watch: where to begin; default: now',
    }),
  ),
  epoch: optionalText(
    'for a watch: that of the list that `revision` is of; refused with `Compacted` when the store was restored since',
  ),
  ifRevision: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'only if it is still at this revision',
    }),
  ),
  force: Type.Boolean({ default: false, description: 'even if instances have allocations on it' }),
  dryRun: Type.Boolean({ default: false, description: 'create nothing: answer with the result' }),
  dryRunOfChange: Type.Boolean({ default: false, description: 'change nothing: answer with the result' }),
  dryRunOfDelete: Type.Boolean({ default: false, description: 'delete nothing: answer with what it would affect' }),
  applyEffects: Type.Optional(
    Type.String({
      minLength: 8,
      maxLength: 64,
      description: 'the hash of the effects that a dry run showed: needed for what is in use',
    }),
  ),
  applyPlan: Type.Optional(
    Type.String({
      minLength: 8,
      maxLength: 64,
      description: 'the hash of the plan that a dry run showed: refused when the plan is another by now',
    }),
  ),
  // The requirements of a consumer, in a query string.
  size: optionalText('a named amount of resources'),
  cpus: Type.Optional(amount('virtual CPUs')),
  memoryMiB: Type.Optional(amount('memory')),
  diskGiB: Type.Optional(amount('disk')),
  gpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 64, description: 'whole GPUs' })),
  image: optionalText('only where this image can run; its default resources apply'),
  pool: optionalText('only hosts of this pool'),
  driver: optionalText('only by this driver'),
  profile: optionalText('scoring profile'),
  hostLabels: optionalText('only hosts with these labels: `rack=r1,disk=ssd`'),
  resources: optionalText(
    'in the syntax of OpenStack Placement: `VCPU:1,MEMORY_MB:256`; also resources1, required, member_of, in_tree, group_policy, same_subtree',
  ),
} as const;

function amount(description: string) {
  return Type.Integer({ minimum: 0, maximum: 2 ** 31, description });
}
