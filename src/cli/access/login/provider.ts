// The OpenID provider of a login, as the server names it and as the provider describes itself.

import { errorCodes } from '../../../api/errors.ts';
import { discover, type ProviderMetadata } from '../../../api/login/discovery.ts';
import type { LoginProvider } from '../../../api/routes/login.ts';
import { fetchJson, type JsonAnswer, type Web } from '../../../base/fetch-json.ts';
import { isRecord } from '../../../base/is-record.ts';
import { describeError } from '../../../base/log.ts';
import { CommandError, usageError } from '../../exit-codes.ts';

export interface Provider extends LoginProvider {
  readonly metadata: ProviderMetadata;
}

/** The only one of the server, or the one that is named. */
export function chosenProvider(providers: readonly LoginProvider[], name: string | undefined): LoginProvider {
  const names = providers.map((each) => each.name).join(', ');
  const [first, second] = name === undefined ? providers : providers.filter((each) => each.name === name);
  if (providers.length === 0)
    throw usageError(
      'the server has no login provider',
      'get a token from an admin: berth context set NAME --token-file FILE',
    );
  if (first === undefined) throw usageError(`the server has no login provider "${name}"`, `it has: ${names}`);
  if (second !== undefined)
    throw usageError('the server has several login providers', `name one of ${names} with --provider`);
  return first;
}

export async function discovered(web: Web, provider: LoginProvider): Promise<Provider> {
  try {
    return { ...provider, metadata: await discover(web, provider.issuer) };
  } catch (cause) {
    throw failed(`cannot log in with "${provider.name}": ${describeError(cause)}`);
  }
}

/** A form to one of the provider's endpoints; errors of OAuth are answers. */
export async function askProvider(
  web: Web,
  { name }: Provider,
  { endpoint, form }: { readonly endpoint: string | undefined; readonly form: Readonly<Record<string, string>> },
): Promise<JsonAnswer & { readonly json: Readonly<Record<string, unknown>> }> {
  if (endpoint === undefined)
    throw failed(`cannot log in with "${name}": the provider does not offer this kind of login`);
  try {
    const { status, json } = await fetchJson(web, endpoint, { form });
    return { status, json: isRecord(json) ? json : {} };
  } catch (cause) {
    throw failed(`cannot log in with "${name}": ${describeError(cause)}`);
  }
}

/** What a provider says of an error, by its code and its own words. */
export function reasonIn(answer: Readonly<Record<string, unknown>>): string {
  const { error, error_description: description } = answer;
  const code = typeof error === 'string' ? error.slice(0, 100) : 'no reason given';
  return typeof description === 'string' ? `${code}: ${description.slice(0, 300)}` : code;
}

export function failed(message: string, advice?: string): CommandError {
  return new CommandError(errorCodes.Unauthenticated.exitCode, message, { advice });
}
