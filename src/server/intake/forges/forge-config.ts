// The hooks of forges as they are configured, and what the process makes of them: secrets read, addresses derived. Secrets
// come from files or the environment, never from the configuration itself, and are never logged.

import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { ApiError } from '../../../api/errors.ts';
import { JobSpec } from '../../../api/resources/job.ts';
import { Name } from '../../../api/resources/metadata.ts';
import { RunRepository } from '../../../api/resources/run.ts';
import { describeError } from '../../../base/log.ts';
import type { Hook } from '../../../core/operations/jobs/webhook.ts';

const closed = { additionalProperties: false } as const;

const pattern = (description: string) =>
  Type.String({ pattern: '^[^\\u0000-\\u0020\\u007f]+$', maxLength: 255, description });

const url = (description: string) =>
  Type.String({ pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*[^\\s?#/])?$', maxLength: 512, description });

const path = Type.String({ minLength: 1, maxLength: 1024 });
const variable = Type.String({
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  maxLength: 128,
  description: 'name of a variable',
});

const HookRuleConfig = Type.Object(
  {
    repository: Type.String({
      pattern: '^[A-Za-z0-9._*?-]+/[A-Za-z0-9._*?-]+$',
      maxLength: 255,
      description: 'OWNER/NAME, where * stands for any characters: owner/*',
    }),
    branches: Type.Array(pattern('a branch, where * stands for part of a name and ** for several: release/*'), {
      minItems: 1,
      maxItems: 64,
    }),
    paths: Type.Optional(
      Type.Array(pattern('a path, where * stands for part of a name and ** for folders: src/**'), {
        minItems: 1,
        maxItems: 64,
      }),
    ),
    events: Type.Array(Type.Enum(['push', 'pull_request']), { minItems: 1, maxItems: 2, uniqueItems: true }),
    label: JobSpec.properties.label,
    workflowPath: Type.Optional(Type.String({ ...RunRepository.properties.path, maxLength: 150 })),
    size: JobSpec.properties.size,
    timeoutMs: Type.Optional(Type.Integer({ minimum: 1_000, maximum: 7 * 24 * 3_600_000 })),
    env: Type.Optional(JobSpec.properties.env),
  },
  closed,
);

export const HookConfig = Type.Object(
  {
    name: Name,
    forge: Type.Enum(['github', 'forgejo']),
    secretFile: Type.Optional(path),
    secretEnv: Type.Optional(variable),
    apiUrl: Type.Optional(url("the address of the forge's API: https://forge.example/api/v1")),
    cloneUrl: Type.Optional(url('what its clone URLs begin with: https://forge.example')),
    tokenFile: Type.Optional(path),
    tokenEnv: Type.Optional(variable),
    project: Type.Unsafe<string>({ ...Name, default: 'default' }),
    rules: Type.Array(HookRuleConfig, { minItems: 1, maxItems: 256 }),
    forks: Type.Enum(['never', 'approved'], { default: 'never' }),
    approvalLabel: Type.String({
      default: 'berth-approved',
      pattern: '^[^\\u0000-\\u001f]{1,100}$',
      maxLength: 100,
      description: 'the label that approves the head of a pull request from a fork, with forks: approved',
    }),
  },
  closed,
);
export type HookConfig = Static<typeof HookConfig>;

/** A hook with its secrets. */
export interface ConfiguredHook extends Hook {
  readonly secret: Uint8Array;
  readonly apiUrl: string;
  /** Absent: no commit statuses, and the forge is not asked. */
  readonly token?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws `InvalidRequest` with the field. */
export async function readHooks(
  configs: readonly HookConfig[],
  environment: Environment,
): Promise<readonly ConfiguredHook[]> {
  const hooks: ConfiguredHook[] = [];
  for (const [i, config] of configs.entries()) {
    const at = `forges[${i}]`;
    if (hooks.some(({ name }) => name === config.name))
      throw invalid(`${at}.name`, `another hook has the name "${config.name}"; give each its own`);
    hooks.push(await readHook(config, { at, environment }));
  }
  return hooks;
}

interface Source {
  readonly at: string;
  readonly environment: Environment;
}

async function readHook(config: HookConfig, source: Source): Promise<ConfiguredHook> {
  const { name, forge, project, rules, forks, approvalLabel } = config;
  const { at } = source;
  if (forks === 'approved' && forge !== 'github')
    throw invalid(`${at}.forks`, 'only GitHub says which label was added; set never for Forgejo');
  const apiUrl = apiUrlOf(config, at);
  const secret = await readSecret(source, {
    file: ['secretFile', config.secretFile],
    variable: ['secretEnv', config.secretEnv],
  });
  if (secret === undefined) throw invalid(`${at}.secretFile`, 'a hook needs a secret; set secretFile or secretEnv');
  const token = await readSecret(source, {
    file: ['tokenFile', config.tokenFile],
    variable: ['tokenEnv', config.tokenEnv],
  });
  return {
    name,
    forge,
    project,
    rules,
    apiUrl,
    cloneBaseUrl: config.cloneUrl ?? cloneUrlOf(apiUrl, { forge, at }),
    secret: Buffer.from(secret),
    ...(token === undefined ? {} : { token }),
    ...(forks === 'approved' ? { approvalLabel } : {}),
  };
}

function apiUrlOf({ forge, apiUrl }: HookConfig, at: string): string {
  if (apiUrl !== undefined) return apiUrl;
  if (forge === 'github') return 'https://api.github.com';
  throw invalid(`${at}.apiUrl`, 'it is missing; set the address of the API: https://forge.example/api/v1');
}

/** GitHub's API has a host of its own, that of its server the path /api/v3, and Forgejo's the path /api/v1. */
function cloneUrlOf(apiUrl: string, { forge, at }: { readonly forge: string; readonly at: string }): string {
  if (apiUrl === 'https://api.github.com') return 'https://github.com';
  const ending = forge === 'github' ? '/api/v3' : '/api/v1';
  if (apiUrl.endsWith(ending)) return apiUrl.slice(0, -ending.length);
  throw invalid(
    `${at}.apiUrl`,
    `it must end in ${ending}; or set cloneUrl, what the clone URLs of the forge begin with`,
  );
}

type Named = readonly [field: string, value: string | undefined];

async function readSecret(
  { at, environment }: Source,
  { file: [fileField, file], variable: [variableField, name] }: { readonly file: Named; readonly variable: Named },
): Promise<string | undefined> {
  if (file !== undefined && name !== undefined)
    throw invalid(`${at}.${fileField}`, `${fileField} and ${variableField} exclude each other; remove one`);
  if (name !== undefined)
    return filled(environment[name], { field: `${at}.${variableField}`, place: `the variable ${name}` });
  if (file === undefined) return undefined;
  const field = `${at}.${fileField}`;
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid(field, `cannot read ${file}: ${describeError(cause)}`);
  });
  return filled(text, { field, place: file });
}

function filled(
  text: string | undefined,
  { field, place }: { readonly field: string; readonly place: string },
): string {
  const secret = (text ?? '').trim();
  if (secret === '') throw invalid(field, `${place} is empty; without a secret anyone could deliver`);
  if (/[^\x21-\x7e]/.test(secret))
    throw invalid(field, `${place} must have one line of ASCII characters without spaces`);
  return secret;
}

function invalid(field: string, why: string): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${why}`, { field });
}
