import { describe, expect, it } from 'vitest';
import type { HostRule } from '../../../api/resources/host-rules.ts';
import { verdictsOn } from './test-rule.ts';

describe('host-rules', () => {
  const hosts = {
    a: { labels: { zone: 'a', cores: '16' } },
    b: { labels: { zone: 'b', cores: '32' } },
    none: {},
  };
  const rows: [string, HostRule, string[]][] = [
    ['In', { key: 'zone', operator: 'In', values: ['a', 'c'] }, ['a']],
    ['NotIn holds without the label too', { key: 'zone', operator: 'NotIn', values: ['a'] }, ['b', 'none']],
    ['Exists', { key: 'zone', operator: 'Exists' }, ['a', 'b']],
    ['DoesNotExist', { key: 'zone', operator: 'DoesNotExist' }, ['none']],
    ['Gt is strict: 16 is not more than 16', { key: 'cores', operator: 'Gt', values: ['16'] }, ['b']],
    ['Lt compares as numbers: 16 < 100', { key: 'cores', operator: 'Lt', values: ['100'] }, ['a', 'b']],
    ['Gt never holds for words', { key: 'zone', operator: 'Gt', values: ['0'] }, []],
    ['what only the prototype has is no label', { key: 'constructor', operator: 'Exists' }, []],
  ];
  for (const [name, rule, expected] of rows) {
    it(name, () => {
      const verdicts = verdictsOn('host-rules', hosts, { placement: { hostRules: [rule] } });
      expect(Object.keys(verdicts).filter((host) => verdicts[host] === 'fits')).toEqual(expected);
    });
  }

  it('all must hold, and the refusal says which does not and what is there', () => {
    const rules: HostRule[] = [
      { key: 'cores', operator: 'Exists' },
      { key: 'zone', operator: 'NotIn', values: ['b'] },
    ];
    expect(verdictsOn('host-rules', hosts, { placement: { hostRules: rules } })).toEqual({
      a: 'fits',
      b: 'LabelMismatch: it must have zone != b, and has zone = b',
      none: 'LabelMismatch: it must have cores set, and has no such label',
    });
  });
});
