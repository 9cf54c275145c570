// Label selectors: `tier=web,zone!=a,gpu,!old`. All parts must hold. No patterns, so no pattern can be made slow.

import { ApiError } from './errors.ts';
import type { Labels } from './resources/metadata.ts';

interface Requirement {
  readonly key: string;
  readonly operator: '=' | '!=' | 'exists' | 'absent';
  readonly value: string;
}

export type Selector = readonly Requirement[];

const lengthMax = 4096;

/** Throws `InvalidRequest` with field `selector`. An empty text selects everything. */
export function parseSelector(text: string): Selector {
  if (text.length > lengthMax) throw invalid(`is longer than ${lengthMax} characters`);
  if (text.trim() === '') return [];
  return text.split(',').map((part) => parseRequirement(part.trim()));
}

function parseRequirement(part: string): Requirement {
  const match = /^(!?)([A-Za-z0-9][A-Za-z0-9._/-]*)(?:(!=|==?)([A-Za-z0-9._-]*))?$/.exec(part);
  if (!match) throw invalid(`has a part that is not one of key=value, key!=value, key, !key: "${part.slice(0, 80)}"`);
  const [, not, key = '', operator, value = ''] = match;
  if (not && operator) throw invalid(`has "!" and "${operator}" in one part: "${part}"`);
  if (operator === undefined) return { key, operator: not ? 'absent' : 'exists', value: '' };
  return { key, operator: operator === '!=' ? '!=' : '=', value };
}

function invalid(what: string): ApiError {
  return new ApiError('InvalidRequest', `the selector ${what}`, { field: 'selector' });
}

/** As in Kubernetes, `key!=value` also selects resources without the key. */
export function selects(selector: Selector, labels: Labels): boolean {
  return selector.every(({ key, operator, value }) => {
    const found = Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case '=':
        return found === value;
      case '!=':
        return found !== value;
      case 'exists':
        return found !== undefined;
      case 'absent':
        return found === undefined;
      default:
        return false;
    }
  });
}
