import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../testing.ts';

const plan = {
  ...{ instance: 'db', instanceId: 'inst_1', project: 'default', kind: 'cold', from: 'h1', to: 'h2', hash: 'abcd1234' },
  ...{ options: {}, copies: [{ what: 'disk', gibMax: 0 }], obstacles: [] },
};
const migration = {
  ...{ id: 'mig_1', step: 'Copying', from: 'h1', to: 'h2', fromIncarnation: 1, incarnation: 2, startedAtMs: 0 },
  seen: { id: 'mig_1', state: 'copying', bytes: 1024 ** 3, ofBytes: 4 * 1024 ** 3 },
};

const moves =
  (answer: object = plan): Handler =>
  ({ method, path, body }) => {
    if (path !== '/v1/instances/db/migration') return undefined;
    if (method === 'DELETE') return { json: { ...migration, step: 'Cancelled' } };
    return { json: JSON.stringify(body).includes('apply') ? { migration } : { plan: answer } };
  };

describe('berth migrate', () => {
  it('shows the plan, and the command that applies it', async () => {
    const { stdout, requests } = await runBerth(
      ['migrate', 'db', '--to', 'h2', '--bandwidth', '100MiB', '--project', 'ci'],
      {
        handler: moves(),
      },
    );
    expect(requests[0]?.body).toEqual({ to: 'h2', bytesPerSecondMax: 104_857_600 });
    expect(stdout).toContain('Plan to move instance db from h1 to h2: it is stopped');
    expect(stdout).toContain('  berth migrate db --to h2 --bandwidth 100MiB --project ci --apply abcd1234\n');
  });

  it('lists all that is in the way', async () => {
    const obstacles = [
      { code: 'HostDevice', message: 'it has a device of its host' },
      { code: 'NoHost', message: 'no other host takes it' },
    ];
    const { stdout, exitCode } = await runBerth(['migrate', 'db'], { handler: moves({ ...plan, obstacles }) });
    expect(exitCode).toBe(7);
    expect(stdout).toBe(
      'Instance db cannot move from h1:\n  HostDevice: it has a device of its host\n  NoHost: no other host takes it\n',
    );
  });

  it('applies the plan of now with --yes, and says how far it is', async () => {
    const { stdout, requests } = await runBerth(['migrate', 'db', '--yes'], { handler: moves() });
    expect(requests.map(({ body }) => body)).toEqual([{}, { apply: 'abcd1234' }]);
    expect(stdout).toBe('db: Copying, from h1 to h2, 1.0 GiB of 4.0 GiB\n');
  });

  it('cancels, prints JSON, and refuses two verbs at once', async () => {
    const cancelled = await runBerth(['migrate', 'db', '--cancel', '-o', 'json'], { handler: moves() });
    expect(JSON.parse(cancelled.stdout)).toMatchObject({ step: 'Cancelled' });
    const refused = await runBerth(['migrate', 'db', '--yes', '--cancel'], { handler: moves() });
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('give only one of --apply, --yes and --cancel');
  });
});
