// Restart policies with real containers, over restarts of the server and of the agent.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type PodmanFleet, startPodmanFleet } from './podman-fleet.ts';
import { type Fleet } from './processes.ts';

const why = whyNoPodman();

describe.skipIf(why !== undefined)(`a program that ends${why === undefined ? '' : ` (${why})`}`, () => {
  let started: PodmanFleet;
  let fleet: Fleet;
  let berth: PodmanFleet['berth'];

  beforeAll(async () => {
    const count = 'n=$(cat /runs || echo 0) 2>/dev/null; echo $((n+1)) >/runs; echo run $n';
    started = await startPodmanFleet([{ name: 'short', script: `${count}; exit \${CODE:-0}` }]);
    ({ fleet, berth } = started);
    await berth('image', 'add', 'short', '--source', 'docker://localhost/short:1', '--cpus', '1', '--memory', '64MiB');
  });
  afterAll(() => started.stop());

  const ended = (name: string) =>
    fleet.until(name, ({ status }) => status.restarts?.exhausted === true && status.phase !== 'Running');
  const logOf = async (name: string): Promise<string> => {
    let text = '';
    for await (const piece of fleet.client.log(name)) text += Buffer.from(piece).toString();
    return text;
  };

  it('starts again on its own disk up to its limit, whichever process is restarted meanwhile', async () => {
    const how = ['--restart', 'always', '--restart-disk', 'kept', '--restart-delay', '500ms', '--restart-limit', '3'];
    await berth('run', 'short', '--name', 'kept', ...how);
    await fleet.until('kept', ({ status }) => status.restartCount === 1);
    await fleet.restartServer();
    await fleet.until('kept', ({ status }) => status.restartCount === 2);
    await fleet.restartAgent();
    const { status } = await ended('kept');
    expect(status).toMatchObject({ phase: 'Exited', incarnation: 1, restartCount: 3, restarts: { inRow: 3 } });
    expect((await logOf('kept')).match(/run \d/g)).toEqual(['run 0', 'run 1', 'run 2', 'run 3']);
    expect(await berth('events', 'kept')).toMatch(/RestartLimit/);
  });

  it('starts again on a new disk after a failure, and under on-failure after nothing else', async () => {
    const how = ['--restart', 'on-failure', '--restart-delay', '100ms', '--restart-limit', '2'];
    await berth('run', 'short', '--name', 'fresh', '--env', 'CODE=3', ...how);
    const { status } = await ended('fresh');
    expect(status).toMatchObject({ phase: 'Failed', incarnation: 3, restartCount: 2 });
    expect((await logOf('fresh')).match(/run \d/g)).toEqual(['run 0']);
    await berth('run', 'short', '--name', 'done', ...how);
    const done = await fleet.until('done', ({ status: { phase } }) => phase === 'Exited');
    expect(done.status.restartCount).toBe(0);
  });
});
