// A plan for people: a line for each resource, and below it the fields that change.

import type { Effects } from '../../api/plans/effects.ts';
import type { Colours } from '../print/output.ts';
import { visible } from '../print/terminal.ts';
import { copyLines } from '../workloads/copy-lines.ts';
import type { ApplyPlan, Change } from './apply-plan.ts';
import type { FieldChange } from '../../api/field-changes.ts';

const signs = { create: '+', change: '~', delete: '-', none: '=' } as const;
const longestValue = 80;
const effectsMax = 10;

export function planLines({ changes }: ApplyPlan, colours: Colours, { applied }: { applied: boolean }): string[] {
  const lines = changes.filter(({ action }) => action !== 'none').flatMap((change) => linesOf(change, colours));
  return [...lines, summaryOf(changes, applied)];
}

function linesOf(change: Change, colours: Colours): string[] {
  const paint = { create: colours.green, change: colours.yellow, delete: colours.red, none: String }[change.action];
  const later = change.checkedLater ? '  (checked when what it names exists)' : '';
  return [
    paint(`${signs[change.action]} ${nameOf(change)}`) + later,
    ...change.fields.map(fieldLine),
    ...effectLines(change.effects),
    ...(change.rollout ? copyLines(change.rollout).map((line) => visible(`    > ${line}`)) : []),
  ];
}

function effectLines(effects: Effects | undefined): string[] {
  if (!effects) return [];
  const { affected, count } = effects;
  const shown = affected.slice(0, effectsMax).map((each) => visible(`    ! ${nameOf(each)}: ${each.message}`));
  return count > shown.length ? [...shown, `    ! and ${count - shown.length} more`] : shown;
}

/** `volume web/data` */
export function nameOf({ kind, project, name }: Record<'kind' | 'project' | 'name', string>): string {
  return visible(`${kind} ${project === '' || project === 'default' ? '' : `${project}/`}${name}`);
}

export function fieldLine(change: FieldChange): string {
  const { field } = change;
  if (!('before' in change) && !('after' in change)) return `    ${visible(field)}`;
  if (!('before' in change)) return `    ${visible(field)}: ${shown(change.after)}`;
  if (!('after' in change)) return `    ${visible(field)}: ${shown(change.before)} → (none)`;
  return `    ${visible(field)}: ${shown(change.before)} → ${shown(change.after)}`;
}

function shown(value: unknown): string {
  const text = visible(JSON.stringify(value));
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
}

function summaryOf(changes: readonly Change[], applied: boolean): string {
  const count = (action: Change['action']): number => changes.filter((change) => change.action === action).length;
  const parts = [
    [count('create'), applied ? 'created' : 'to create'],
    [count('change'), applied ? 'changed' : 'to change'],
    [count('delete'), applied ? 'deleted' : 'to delete'],
    [count('none'), 'unchanged'],
  ] as const;
  return parts.flatMap(([number, what]) => (number > 0 ? [`${number} ${what}`] : [])).join(', ');
}
