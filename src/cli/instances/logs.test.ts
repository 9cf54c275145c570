import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../testing.ts';

describe('berth logs', () => {
  const bytes = ['boot\r\n\u001b[3', '2mok\u001b[0m \u001b[2J\u001b]0;title\u0007', '\r\ndone\n'];
  const handler: Handler = ({ path }) => (path === '/v1/instances/web/log' ? { bytes } : undefined);

  it('passes bytes on as they are when piped', async () => {
    const { stdout, requests } = await runBerth(['logs', 'web', '--offset', '5'], { handler });
    expect(stdout).toBe(bytes.join(''));
    expect(requests[0]?.query).toEqual({ project: 'default', offset: '5', follow: 'false' });
  });

  it.each([
    ['0', ''],
    ['1', 'c\n'],
    ['2', '\nc\n'],
    ['3', 'b\n\nc\n'],
    ['4', '\nb\n\nc\n'],
    ['9', '\nb\n\nc\n'],
  ])('shows the last %s lines', async (lines, expected) => {
    const whole: Handler = () => ({ bytes: ['\nb', '\n\n', 'c\n'] });
    expect((await runBerth(['logs', 'web', '--tail', lines], { handler: whole })).stdout).toBe(expected);
  });

  it('counts a last line without its end, and goes on behind it', async () => {
    const begun: Handler = ({ query }) => ({ bytes: query['follow'] === 'true' ? ['d\n'] : ['a\nb\n', 'c'] });
    const { stdout, requests } = await runBerth(['logs', 'web', '-f', '-n', '2'], { handler: begun });
    expect(stdout).toBe('b\ncd\n');
    const reads = requests.filter(({ path }) => path.endsWith('/log'));
    expect(reads.map(({ query }) => [query['offset'], query['follow']])).toEqual([
      ['0', 'false'],
      ['5', 'true'],
    ]);
  });

  it('keeps lines and colours on a terminal, and spells out the rest', async () => {
    const { stdout } = await runBerth(['logs', 'web'], { handler, terminal: { columns: 80, rows: 24 } });
    expect(stdout).toBe('boot\n\u001b[32mok\u001b[0m \\x1b[2J\\x1b]0;title\\x07\ndone\n\u001b[0m');
  });
});
