// The ID token of a CI job: from the environment of GitHub Actions and Forgejo Actions, for the audience of this server only.

import { fetchJson, type Web } from '../../../base/fetch-json.ts';
import { isRecord } from '../../../base/is-record.ts';
import { describeError } from '../../../base/log.ts';
import { usageError } from '../../exit-codes.ts';
import { failed } from './provider.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export async function idTokenOfJob(web: Web, environment: Environment, audience: string): Promise<string> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: address, ACTIONS_ID_TOKEN_REQUEST_TOKEN: token } = environment;
  const url = URL.parse(address ?? '');
  if (url === null || !token)
    throw usageError(
      'cannot log in as a workload: the job has no ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN',
      'give the job the permission "id-token: write" (GitHub), or "enable-openid-connect: true" (Forgejo); in GitLab CI pipe the ID token into --id-token-file -',
    );
  url.searchParams.set('audience', audience);
  const { status, json } = await fetchJson(web, url.href, { headers: { authorization: `bearer ${token}` } }).catch(
    (cause: unknown) => {
      throw failed(`cannot get an ID token of the CI system: ${withoutQuery(describeError(cause))}`);
    },
  );
  if (status === 200 && isRecord(json) && typeof json['value'] === 'string') return json['value'];
  throw failed(`the CI system gives no ID token: it answers with the status ${status}`);
}

/** The query may have parts that are secret. */
function withoutQuery(text: string): string {
  return text.replaceAll(/\?[^\s:]*/g, '');
}
