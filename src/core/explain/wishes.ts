// Wishes: every requirement of a request besides room, one by one, with the request without it. The rules give them
// their meaning: a new term needs nothing here.

import type { Request } from '../scheduler/request.ts';

export interface Wish {
  /** `the label rule rack=r1`. */
  readonly words: string;
  readonly without: Request;
}

/** Number tried for one request. */
const wishesMax = 64;

/** Terms whose removal makes no host fit: what the instance is, prefers and tolerates. */
const facts: ReadonlySet<string> = new Set(['image', 'project', 'preferences', 'tolerations']);

/** `ownDriver`: the instance requires the driver, not its image. */
export function wishesOf(request: Request, ownDriver: boolean): Wish[] {
  const wishes: Wish[] = [];
  for (const [name, value] of Object.entries(request.terms)) {
    if (facts.has(name) || (name === 'driver' && !ownDriver) || value === undefined || value === null) continue;
    const without = (rest: unknown): Request => ({ ...request, terms: { ...request.terms, [name]: rest } });
    wishes.push(...partsOf(name, value, without));
  }
  for (const port of request.ports)
    wishes.push({
      words: `the host port ${port}`,
      without: { ...request, ports: request.ports.filter((other) => other !== port) },
    });
  for (const term of request.groups)
    wishes.push({
      words: groupWords(term),
      without: { ...request, groups: request.groups.filter((other) => other !== term) },
    });
  return wishes.slice(0, wishesMax);
}

const wordsByTerm: Readonly<Record<string, string>> = {
  hostLabels: 'the label rule',
  hostRules: 'the label rule',
  pool: 'the pool',
  driver: 'the driver',
  traits: 'the trait rule',
  aggregates: 'the aggregate rule',
  dedicated: 'the request for dedicated hosts:',
};

function partsOf(name: string, value: unknown, without: (rest: unknown) => Request): Wish[] {
  const word = wordsByTerm[name] ?? `the rule ${name}`;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    return items.map((item) => ({
      words: `${word} ${textOf(item)}`,
      without: without(items.filter((other) => other !== item)),
    }));
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    return entries.flatMap(([key, each]) => {
      const others = entries.filter(([other]) => other !== key);
      if (!Array.isArray(each))
        return [{ words: `${word} ${key}=${textOf(each)}`, without: without(Object.fromEntries(others)) }];
      const items: readonly unknown[] = each;
      return items.map((item) => ({
        words: `${word} ${key} ${textOf(item)}`,
        without: without(Object.fromEntries([...others, [key, items.filter((other) => other !== item)]])),
      }));
    });
  }
  return [{ words: `${word} ${textOf(value)}`, without: without(undefined) }];
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null) return Object.values(value).map(textOf).join(' ');
  return String(value);
}

function groupWords(term: Request['groups'][number]): string {
  switch (term.kind) {
    case 'limit':
      return `the limit of ${term.max + 1} per ${term.by}`;
    default:
      return `the ${term.kind} rule by ${'by' in term ? term.by : ''}`;
  }
}
