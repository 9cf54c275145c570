// Runs of guests that boot before they have a program.

import { expect, it } from 'vitest';
import { type FakeProgram, RunWorld } from './test-fake-guest.ts';

const program: FakeProgram = { output: [['stdout', 'hello\n']], exitCode: 0 };
const waiting = { warm: 'waiting' } as const;

async function waitingWorld(): Promise<RunWorld> {
  const world = new RunWorld(program, waiting);
  await world.begin();
  await world.start();
  await world.until(() => world.runner.heard.includes('hello'));
  return world;
}

/** As the control plane orders it after a claim. */
function claim(world: RunWorld): void {
  const { assigned, guest, driver } = world;
  const run = { ...assigned.run, script: 'echo "hello"\n', env: { WORD: { secret: 'ci', key: 'word' } } };
  world.assigned = { ...assigned, run: { ...run, warm: 'claimed' }, secrets: { ci: { word: 'it is' } } };
  world.runs?.look(world.assigned, guest, driver);
}

it('waits for its program for as long as it takes', async () => {
  const world = await waitingWorld();
  world.clock.advance(24 * 3_600_000);
  expect([world.status?.state, world.runner.begun, world.runner.heard.includes('go')]).toEqual(['waiting', 0, false]);
});

it('gets the program over the port, once', async () => {
  const world = await waitingWorld();
  claim(world);
  await world.ended();
  expect(world.runner.files).toEqual({
    settings: String.raw`program=\0047.solstice/job.sh\0047\0012`,
    env: String.raw`export\0040WORD=\0047it\0040is\0047\0012`,
    artifacts: String.raw`\c`,
    script: String.raw`echo\0040\0042hello\0042\0012`,
  });
  expect([world.status?.outcome, world.runner.begun, world.texts().stdout]).toEqual(['exited', 1, 'hello\n']);
});

it('gets it again by the next agent, when the first ends before it begins', async () => {
  const world = await waitingWorld();
  await world.runs?.close();
  await world.begin();
  claim(world);
  await world.ended();
  expect([world.status?.outcome, world.runner.begun]).toEqual(['exited', 1]);
});
