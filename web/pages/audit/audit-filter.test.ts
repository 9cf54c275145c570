import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../../src/api/audit/audit-log.ts';
import { auditCommand, auditFilterOf, isShown, objectText } from './audit-filter.ts';

const filter = (query: string) => auditFilterOf(new URLSearchParams(query));
const record = { face: 'http', outcome: 'refused', verb: 'create', kind: 'instance', object: 'web' } as AuditRecord;

describe('the filter in the address', () => {
  it.each([
    ['', true],
    ['face=http', true],
    ['face=mcp', false],
    ['outcome=done', false],
    ['verb=CREATE', true],
    ['verb=inst', true],
    ['verb=delete', false],
    ['outcome=refused&verb=create&face=http', true],
  ])('"%s" shows the line: %s', (query, shown) => {
    expect(isShown(record, filter(query))).toBe(shown);
  });

  it.each([
    ['', 'berth audit log'],
    ['since=24h&who=token/ci', 'berth audit log --since 24h --who token/ci'],
    ['since=nonsense', 'berth audit log'],
    ["object=it's", String.raw`berth audit log --object 'it'\''s'`],
  ])('"%s" is %s', (query, command) => {
    expect(auditCommand(filter(query))).toBe(command);
  });
});

it('names the object by kind, project and name', () => {
  expect(objectText({ ...record, project: 'p' })).toBe('instance/p/web');
  expect(objectText({} as AuditRecord)).toBe('–');
});
