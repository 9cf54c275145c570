// A resource as YAML, as the command line prints it.

import { stringify } from 'yaml';

export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}
