import { describe, expect, it } from 'vitest';
import { runBerth } from './testing.ts';

describe('berth help', () => {
  it('shows the help of a command below a noun', async () => {
    const { stdout, exitCode } = await runBerth(['help', 'volume', 'snapshot']);
    expect(stdout).toContain('Usage: berth volume snapshot');
    expect(exitCode).toBe(0);
  });

  it('without words shows the commands', async () => {
    const { stdout, exitCode } = await runBerth(['help']);
    expect(stdout).toMatch(/Instances:\n {2}run /);
    expect(exitCode).toBe(0);
  });

  it.each([
    [
      ['volume', 'attach', 'data'],
      'berth: missing argument <instance>',
      'berth volume attach [options] <volume> <instance>',
    ],
    [['size', 'create', 'x'], 'berth: missing option --cpus <count>', 'berth size create [options] <name>'],
    [['apply', 'a.yaml', 'b.yaml'], 'berth: unexpected arguments: a.yaml b.yaml', 'berth apply -f FILE [options]'],
    [
      ['volume', 'resize', 'data', '2GiB', 'x'],
      'berth: unexpected argument: x',
      'berth volume resize [options] <volume> [size]',
    ],
  ])('shows the usage after %j', async (words, message, usage) => {
    const { stderr, exitCode } = await runBerth(words);
    const help = usage.replace(/ [[<-].*/, '');
    expect(stderr).toBe(`${message}\n  usage: ${usage}; "${help} --help" explains it\n`);
    expect(exitCode).toBe(2);
  });

  it.each([
    [['nope'], 'there is no command "nope"'],
    [['volume', 'snapshoot'], 'there is no command "volume snapshoot"\n  did you mean "berth volume snapshot"?'],
  ])('refuses %j', async (words, message) => {
    const { stdout, stderr, exitCode } = await runBerth(['help', ...words]);
    expect(stderr).toContain(message);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
  });
});
