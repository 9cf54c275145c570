// JobRequest: the message that asks for a job, as publishers send it over AMQP or POST. Its field names are the
// publishers', so they are not in the style of the rest of the API.

import { type Static, Type } from 'typebox';
import { RunRepository } from './resources/run.ts';

export const jobRequestVersion = 'jobrequest.v1';

/** The size of a message in bytes. */
export const jobRequestBytesMax = 1024 * 1024;

const { url, path } = RunRepository.properties;

/** Optional fields may be null, which means absent. Fields that are not listed are kept out of the job. */
export const JobRequest = Type.Object(
  {
    schema_version: Type.Enum([jobRequestVersion]),
    request_id: Type.String({
      pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
      description: 'a UUID; the same id is the same request',
    }),
    source: Type.Enum(['github', 'forgejo', 'manual']),
    repo_url: Type.String({ ...url }),
    commit_sha: Type.String({
      pattern: '^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$',
      description: 'the full hash of the commit: 40 or 64 hex digits',
    }),
    workflow_path: path,
    workflow_job_id: Type.Optional(
      Type.String({ maxLength: 255, pattern: '^[^\\u0000-\\u001f]*$', description: 'at most 255 characters' }),
    ),
    runs_on: Type.Optional(
      Type.String({
        pattern: '^[^\\u0000-\\u0020]{0,255}$',
        description: 'an alias or name of an image; absent or empty: the default label',
      }),
    ),
    submitted_at: Type.String({
      pattern: '^\\d{4}-\\d\\d-\\d\\d[Tt ]\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?([Zz]|[+-]\\d\\d:\\d\\d)$',
      description: 'a time of RFC 3339: 2026-11-26T03:10:11Z',
    }),
  },
  { additionalProperties: true },
);
export type JobRequest = Static<typeof JobRequest>;
