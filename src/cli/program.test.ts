import { describe, expect, it } from 'vitest';
import { type Handler, page, refusal, runBerth, testInstance } from './testing.ts';

describe('a failure says what was attempted and ends with its code', () => {
  it.each([
    [
      'NotFound',
      404,
      3,
      'berth: cannot remove instance "x": there is no instance "x"\n  "berth ps" shows the instances, "berth ps -A" those of all projects\n',
    ],
    [
      'Unauthenticated',
      401,
      4,
      'berth: cannot remove instance "x": there is no instance "x"\n  log in with "berth login"',
    ],
    ['Conflict', 409, 5, 'berth: cannot remove instance "x": there is no instance "x"\n'],
    ['Unavailable', 503, 6, 'berth: cannot remove instance "x": there is no instance "x"\n  the server is running'],
    ['Internal', 500, 1, 'berth: cannot remove instance "x": there is no instance "x"\n'],
  ])('%s', async (code, status, expected, message) => {
    const { stderr, exitCode } = await runBerth(['rm', 'x'], {
      handler: () => refusal(status, code, 'there is no instance "x"'),
    });
    expect(stderr).toContain(message);
    expect(exitCode).toBe(expected);
  });

  it('a page that is not ours', async () => {
    const { stderr, exitCode } = await runBerth(['ps'], { handler: () => ({ json: '<html>' }) });
    expect(exitCode).not.toBe(0);
    expect(stderr).toMatch(/^berth: /);
  });

  it('an unknown command, with the nearest', async () => {
    const { stderr, exitCode } = await runBerth(['pss']);
    expect(stderr).toBe('berth: there is no command "pss"\n  did you mean "berth ps"? "berth --help" shows all\n');
    expect(exitCode).toBe(2);
    expect(await runBerth(['step', 'web'])).toMatchObject({
      exitCode: 2,
      stderr: 'berth: there is no command "step"\n  "berth --help" shows the commands\n',
    });
  });

  it.each([
    ['nope', '"berth volume --help" shows the commands'],
    ['snapshoot', 'did you mean "berth volume snapshot"? "berth volume --help" shows all'],
  ])('an unknown command below a noun, as help does: %s', async (word, hint) => {
    const expected = { stdout: '', exitCode: 2, stderr: `berth: there is no command "volume ${word}"\n  ${hint}\n` };
    expect(await runBerth(['volume', word])).toMatchObject(expected);
    expect(await runBerth(['help', 'volume', word])).toMatchObject(expected);
  });

  it('a kind that is not there, with the nearest', async () => {
    const { stderr, exitCode } = await runBerth(['get', 'instnces']);
    expect(stderr).toContain('did you mean "instance"?');
    expect(exitCode).toBe(2);
  });

  it('goes on with the other names, and counts', async () => {
    const handler: Handler = ({ path }) =>
      path.endsWith('/gone') ? refusal(404, 'NotFound', 'there is no instance "gone"') : { json: testInstance('web') };
    const { stdout, stderr, exitCode } = await runBerth(['rm', 'gone', 'web'], { handler });
    expect(stdout).toBe('web is being removed\n');
    expect(stderr).toContain('cannot remove instance "gone"');
    expect(stderr).toContain('1 of 2 failed');
    expect(exitCode).toBe(3);
  });
});

it.each(['run', 'exec', 'project create'])(
  'berth %s --help says what a flag defaults to where there is news in it',
  async (words) => {
    const { stdout } = await runBerth([...words.split(' '), '--help']);
    expect(stdout).toMatch(/may be\s+repeated/);
    expect(stdout).not.toMatch(/default: \[\]|repeatable/);
  },
);

it.each([
  ['that --apply mends it', { code: 'OrphanRecord', repair: 'removes the record' }, '', 'repaired with --apply'],
  [
    'which flags remove it',
    { code: 'UnknownGuest', repair: 'orders its removal', destroys: true },
    '',
    'only by --apply --remove-unknown',
  ],
  ['that --apply has no way to mend it', { code: 'Stuck' }, '', '--apply can repair none of it'],
  ['that a person is needed for what is left', { code: 'Stuck' }, '--apply', 'needs an operator'],
])('berth verify says of what it found %s', async (_, finding, flag, advice) => {
  const checked = { instances: 1, allocations: 1, providers: 1, hosts: 1, hostsHeard: 1 };
  const findings = [{ subject: 'host h1', message: 'it does not fit', cause: 'a fault', ageMs: 90_000, ...finding }];
  const report = { findings, young: 0, checked, repaired: [], watchedMs: 3_600_000 };
  const words = ['verify', ...(flag === '' ? [] : [flag])];
  const { stderr, exitCode } = await runBerth(words, { handler: () => ({ json: report }) });
  expect(stderr).toContain(advice);
  expect(exitCode).toBe(7);
});

it.each([
  ['list', '/v1/instances'],
  ['host list', '/v1/hosts'],
  ['volume list', '/v1/volumes'],
])('berth %s is another word for ls', async (words, path) => {
  const { exitCode, requests } = await runBerth(words.split(' '), { handler: () => page([]) });
  expect({ exitCode, path: requests[0]?.path }).toEqual({ exitCode: 0, path });
});
