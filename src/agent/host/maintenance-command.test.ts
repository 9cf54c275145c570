import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { systemClock } from '../../base/system.ts';
import { MaintenanceCommand } from './maintenance-command.ts';

let directory: string;
beforeEach(async () => (directory = await mkdtemp(join(tmpdir(), 'berth-maintenance-'))));
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Appends a line to `ran`, then ends with this exit code. */
const open = (exitCode = 0): MaintenanceCommand =>
  new MaintenanceCommand({
    command: ['/bin/sh', '-c', `echo once >>"$0"; echo no kernel >&2; exit ${exitCode}`, join(directory, 'ran')],
    file: join(directory, 'maintenance.json'),
    ...{ clock: systemClock, log: silentLogger },
  });

const runs = async (): Promise<number> =>
  (await readFile(join(directory, 'ran'), 'utf8').catch(() => '')).split('\n').length - 1;

const ended = (command: MaintenanceCommand) =>
  vi.waitFor(() => expect(command.report?.state).not.toBe('running'), { interval: 5, timeout: 10_000 });

describe('the maintenance command', () => {
  it('runs once for an order, also after a restart of the agent', async () => {
    const first = open();
    expect(first.report).toBeUndefined();
    first.begin('order-1');
    first.begin('order-1');
    await ended(first);
    expect(first.report).toEqual({ id: 'order-1', state: 'finished' });
    const second = open();
    expect(second.report).toEqual(first.report);
    second.begin('order-1');
    expect([second.report, await runs()]).toEqual([first.report, 1]);
    second.begin('order-2');
    await ended(second);
    expect(await runs()).toBe(2);
  });

  it('says why it has failed', async () => {
    const command = open(3);
    command.begin('order-1');
    await ended(command);
    expect(command.report).toEqual({ id: 'order-1', state: 'failed', message: 'exit code 3: no kernel' });
  });
});
