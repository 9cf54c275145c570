import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { accessResources, builtInRoles, type RoleRules, sharedWithProjects } from '../../api/access.ts';

const document = readFileSync(new URL('../../../docs/access-control.md', import.meta.url), 'utf8');
const roles = Object.entries(builtInRoles).filter(([name]) => name !== 'admin' && name !== 'metrics');

/** The table of docs/access-control.md. */
function table(): string {
  const cell = (rules: RoleRules, resource: (typeof accessResources)[number]): string =>
    (rules[resource] ?? []).join(' ') || '–';
  const rows = accessResources
    .filter((resource) => roles.some(([, { rules }]) => resource in rules))
    .map((resource) => `| ${resource} | ${roles.map(([, { rules }]) => cell(rules, resource)).join(' | ')} |`);
  return [
    `| resource | ${roles.map(([name]) => name).join(' | ')} |`,
    `|---|${roles.map(() => '---|').join('')}`,
    ...rows,
  ].join('\n');
}

it('has the table of roles in the documents', () => {
  expect(document).toContain(table());
});

it('names in the documents what a role in one project reaches of the fleet', () => {
  for (const resource of Object.keys(sharedWithProjects)) expect(document).toContain(`${resource}s`);
});
