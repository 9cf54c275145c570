// A configuration as it may be shown: values that are secrets, and passwords in URLs, are replaced. Never lets a value through
// because its type is unexpected.

import { isRecord } from '../../base/is-record.ts';

export const hidden = '(hidden)';

/** Whole values. A command may contain a password. */
const secretKey =
  /^(token|password|secret|authorization|cookie|masterKeyCommand|.*(Password|Secret|ApiKey|PrivateKey))$/i;
/** Maps whose values are often secrets, although their keys are free text. */
const secretMap = /^(headers|environment|env)$/i;

/** `postgres://ann:pw@db/berth` → `postgres://ann:(hidden)@db/berth`; below `headers` and `environment` every value is hidden. */
export function withoutSecrets(value: unknown, key = ''): unknown {
  if (value === undefined || value === null || typeof value === 'boolean') return value;
  if (secretKey.test(key)) return hidden;
  if (typeof value === 'string') return withoutPassword(value);
  if (Array.isArray(value)) return value.map((entry: unknown) => withoutSecrets(entry));
  if (!isRecord(value)) return value;
  const every = secretMap.test(key);
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [name, every ? hidden : withoutSecrets(entry, name)]),
  );
}

/** Up to the last @ before the path: a password may contain one. Also in the query, as PostgreSQL allows. */
function withoutPassword(text: string): string {
  return text
    .replace(/(:\/\/[^/?#\s:@]*):[^/?#\s]*@/g, `$1:${hidden}@`)
    .replace(/([?&](?:password|token|secret|access_token|api_?key)=)[^&#\s]*/gi, `$1${hidden}`);
}
