import { describe, expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { LimitsConfig } from './limits-config.ts';
import { type Arrival, type Limited, RequestLimits } from './request-limits.ts';

function limited(config: Partial<LimitsConfig> = {}) {
  const clock = createManualClock();
  const limits = new RequestLimits(parse(LimitsConfig, config), { clock });
  /** `ok`, after how many ms it is answered, or after how many seconds it may come again. */
  const from = (remoteAddress: string, by: Arrival['from'] = 'unknown', withToken = false): string => {
    const admission = limits.admit({ remoteAddress, from: by, withToken });
    if (!admission.admitted) return `again in ${(admission.error.details as { retryAfterS: number }).retryAfterS} s`;
    return 'delayMs' in admission ? `after ${Math.round(admission.delayMs)} ms` : 'ok';
  };
  return { clock, limits, from };
}

const [web, ci]: [Limited, Limited] = [
  { kind: 'host', id: 'web' },
  { kind: 'token', id: 'ci' },
];

describe('limits of requests', () => {
  it('count requests without a token by address', () => {
    const { clock, from } = limited({ addressRequestsPerSecond: 1, addressBurst: 2 });
    expect([from('192.0.2.1'), from('192.0.2.1'), from('192.0.2.1')]).toEqual(['ok', 'ok', 'again in 1 s']);
    expect(from('192.0.2.2')).toBe('ok');
    clock.advance(1_000);
    expect([from('192.0.2.1'), from('192.0.2.1')]).toEqual(['ok', 'again in 1 s']);
  });

  it('count an IPv6 network as one address', () => {
    const { from } = limited({ addressBurst: 1 });
    expect([from('2001:db8::1'), from('2001:db8::2'), from('2001:db8:0:1::1')]).toEqual(['ok', 'again in 1 s', 'ok']);
  });

  it('count requests with a token for its principal only, from wherever they come', () => {
    const { from } = limited({ addressBurst: 1, tokenBurst: 2, hostBurst: 3, hostRequestsPerSecond: 1 });
    expect(from('192.0.2.1')).toBe('ok');
    expect([1, 2, 3, 4].map(() => from('192.0.2.1', web))).toEqual(['ok', 'ok', 'ok', 'again in 1 s']);
    expect(['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => from(address, ci))).toEqual([
      'ok',
      'ok',
      'again in 1 s',
    ]);
    expect(from('192.0.2.1', { kind: 'host', id: 'web2' })).toBe('ok');
    expect(from('192.0.2.1')).toBe('again in 1 s');
  });

  it('keep a host and a token of the same name apart', () => {
    const { from } = limited({ tokenBurst: 1, hostBurst: 1 });
    expect([from('192.0.2.1', { kind: 'token', id: 'a' }), from('192.0.2.1', { kind: 'host', id: 'a' })]).toEqual([
      'ok',
      'ok',
    ]);
  });

  it('are met neither by the admin token nor by programs of this machine', () => {
    const { from } = limited({ addressBurst: 1, failedLoginsPerMinute: 1 });
    for (let i = 0; i < 100; i++) {
      expect(from('192.0.2.1', 'unlimited', true)).toBe('ok');
      expect(from('127.0.0.1', 'unknown', true)).toBe('ok');
    }
  });

  it('delay the answers to an address that has sent ten invalid tokens within a minute, and no others', () => {
    const { clock, from } = limited();
    for (let i = 0; i < 10; i++) expect(from('192.0.2.1', 'unknown', true)).toBe('ok');
    expect(from('192.0.2.1', 'unknown', true)).toBe('after 5000 ms');
    expect(from('192.0.2.1', ci, true)).toBe('ok');
    expect(from('192.0.2.1', 'unknown', false)).toBe('ok');
    expect(from('192.0.2.2', 'unknown', true)).toBe('ok');
    clock.advance(6_000);
    expect(from('192.0.2.1', 'unknown', true)).toBe('ok');
    expect(from('192.0.2.1', 'unknown', true)).toBe('after 5000 ms');
  });

  it('hold what stays open to a number for each principal', () => {
    const { limits } = limited({ tokenWatches: 2, hostWatches: 1, tokenStreams: 1 });
    const [first] = [limits.hold('watches', ci), limits.hold('watches', ci)];
    expect(() => limits.hold('watches', ci)).toThrow('2 watches are open with this token already; try again in 1 s');
    limits.hold('watches', web);
    expect(() => limits.hold('watches', web)).toThrow('1 watches');
    limits.hold('streams', ci);
    limits.hold('watches', 'unlimited');
    first?.();
    first?.();
    limits.hold('watches', ci);
    expect(() => limits.hold('watches', ci)).toThrow('2 watches');
    expect(limits.refused).toBe(3);
  });
});
