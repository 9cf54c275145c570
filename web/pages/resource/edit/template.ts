// What a new resource begins with: its required fields, and all others as comments with their meaning, from the schema. Pure.

import { type Kind, resourceDefinitions } from '../../../../src/api/resources/index.ts';

interface Field {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
}

interface Fields {
  readonly properties?: Readonly<Record<string, Field>>;
  readonly required?: readonly string[];
}

export function templateOf(kind: Kind): string {
  const { scope, spec } = resourceDefinitions[kind];
  const { properties = {}, required = [] } = spec as unknown as Fields; // it is a JSON Schema
  const needed = Object.keys(properties).filter((name) => required.includes(name) && valueOf(properties[name]) === '');
  const others = Object.keys(properties).filter((name) => !needed.includes(name));
  return [
    `kind: ${kind}`,
    'metadata:',
    '  name: ',
    ...(scope === 'project' ? ['  project: default'] : []),
    needed.length === 0 ? 'spec: {}' : 'spec:',
    ...needed.map((name) => `  ${name}: ${commentOf(properties[name])}`),
    ...(others.length > 0 ? ['  # These may be absent:'] : []),
    ...others.map((name) => `  # ${name}: ${valueOf(properties[name])}${commentOf(properties[name])}`),
    '',
  ].join('\n');
}

function valueOf({ default: value }: Field = {}): string {
  return value === undefined ? '' : JSON.stringify(value);
}

function commentOf({ type, enum: choices, description }: Field = {}): string {
  const kind = choices ? choices.map(String).join(' | ') : type;
  const words = [kind, description].filter(Boolean).join(': ');
  return words === '' ? '' : `  # ${words.replaceAll('\n', ' ')}`;
}
