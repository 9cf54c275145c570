import { describe, expect, it } from 'vitest';
import { verdictsOn } from './test-rule.ts';

describe('dedicated', () => {
  const hosts = {
    plain: {},
    dedicated: { spec: { dedicated: true } },
    ours: { spec: { dedicatedTo: 'ours' } },
    both: { spec: { dedicated: true, dedicatedTo: 'ours' } },
  };
  const fits = (project: string, dedicated?: boolean) => {
    const placement = dedicated === undefined ? {} : { dedicated };
    const verdicts = verdictsOn('dedicated', hosts, { placement }, { project });
    return Object.keys(verdicts).filter((host) => verdicts[host] === 'fits');
  };
  it('a plain request never lands on a dedicated host', () => expect(fits('theirs')).toEqual(['plain']));
  it('saying that it need not be dedicated is a plain request', () => expect(fits('theirs', false)).toEqual(['plain']));
  it('who asks for one lands on no other', () => expect(fits('theirs', true)).toEqual(['dedicated']));
  it("a project's own hosts take its plain requests", () => expect(fits('ours')).toEqual(['plain', 'ours']));
  it('and count as dedicated for it', () => expect(fits('ours', true)).toEqual(['dedicated', 'ours', 'both']));
});
