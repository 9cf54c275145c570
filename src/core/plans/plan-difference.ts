// What has changed since a plan was shown, in words: one line per guest.

import type { PlannedGuest } from '../../api/plans/host-plan.ts';

export function differenceOf(shown: readonly PlannedGuest[], now: readonly PlannedGuest[]): string[] {
  const before = new Map(shown.map((guest) => [guest.id, guest]));
  const lines: string[] = [];
  for (const guest of now) {
    const was = before.get(guest.id);
    before.delete(guest.id);
    if (!was) lines.push(`${nameOf(guest)} is new here: ${wordsOf(guest)}`);
    else if (wordsOf(was) !== wordsOf(guest)) lines.push(`${nameOf(guest)}: ${wordsOf(was)} → ${wordsOf(guest)}`);
    else if (was.incarnation !== guest.incarnation || was.generation !== guest.generation)
      lines.push(`${nameOf(guest)} has changed or was started again`);
  }
  for (const guest of before.values()) lines.push(`${nameOf(guest)} is no longer here`);
  return lines.length > 0 ? lines : ['the order has changed'];
}

function nameOf({ kind, project, name }: PlannedGuest): string {
  return `${kind} ${project}/${name}`;
}

function wordsOf({ action, target, reasons }: PlannedGuest): string {
  const codes = reasons.map(({ code }) => code).join(', ');
  return `${action}${target === undefined ? '' : ` to ${target}`}${codes === '' ? '' : ` (${codes})`}`;
}
