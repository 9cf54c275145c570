// docs/configuration.md from the two schemas: every key with its type, limits, default and variable. The text around the tables
// stands here too, so that the page has one source.

import type { TSchema } from 'typebox';
import { variableOf } from '../../api/config.ts';
import { isRecord } from '../../base/is-record.ts';
import { type Role, roles } from './roles.ts';

const intro = `# Configuration

This page is generated from the schemas of the program: \`node scripts/configuration-page.ts\`.

\`berth server\` and \`berth agent\` each read one YAML file, named by \`--config\`. Each key is also an environment variable, and
the frequent ones are flags. A flag wins over a variable, a variable over the file, the file over the default. An unknown key or
variable is an error.

\`\`\`console
$ berth config check /etc/berth/server.yaml
/etc/berth/server.yaml is a valid configuration of berth server; it sets 3 of its keys
$ berth config show --server --config /etc/berth/server.yaml --changed
\`\`\`

\`berth config check\` reads one file and starts nothing. \`--server\` or \`--agent\` states whose file it is; without them the keys
tell. It exits with 0, or with 2 and a message that names the key. It does not open the store, and reads no file that the
configuration names.

\`berth config show\` prints every key with its value and its source: default, file, environment, or flag. It reads the environment
of the shell in which it runs, which can differ from that of a service. Flags of a running process are not known to it. Secrets and
passwords in URLs are hidden. \`-o json\` prints the same for programs.

A list in a variable has commas between its values, a map \`key=value\` pairs. Lists of objects belong in the file.

Files with comments to start from: [server.yaml](../packaging/config/server.yaml) and [agent.yaml](../packaging/config/agent.yaml).
`;

export function configurationPage(): string {
  return `${intro}\n${section('server')}\n${section('agent')}`;
}

function section(role: Role): string {
  const { schema, prefix } = roles[role];
  const rows = Object.entries(schema.properties).map(([key, property]) => rowOf(key, property, prefix));
  return `## berth ${role}\n\n| key, variable | type | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

function rowOf(key: string, schema: TSchema, prefix: string): string {
  const fields: Readonly<Record<string, unknown>> = { ...schema };
  const { default: usual, description } = fields;
  const shown = usual === undefined ? '' : code(JSON.stringify(usual));
  const meaning = typeof description === 'string' ? cell(description) : '';
  return `| ${code(key)}<br>${code(variableOf(key, prefix))} | ${cell(typeOf(fields))} | ${shown} | ${meaning} |`;
}

function typeOf(schema: Readonly<Record<string, unknown>>): string {
  const { type, minimum, maximum, items } = schema;
  if (Array.isArray(schema['enum'])) return schema['enum'].join(', ');
  if (type === 'array') return `list of ${isRecord(items) ? typeOf(items) : 'values'}`;
  if (type === 'object') return 'map';
  const name = typeof type === 'string' ? type : 'value';
  if (typeof minimum === 'number' && typeof maximum === 'number') return `${name}, ${minimum} to ${maximum}`;
  return typeof minimum === 'number' ? `${name}, at least ${minimum}` : name;
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
}
