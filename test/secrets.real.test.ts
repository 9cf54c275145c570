// What an instance is given in confidence, from the command line to the guest: real server, agent and QEMU, everybody as talkative as he may be.

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, runBerth, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Fleet;
const secrets = { user: 'a-secret-of-the-user', operator: 'a-secret-of-the-operator' };

beforeAll(async () => {
  const tiny = await tinyImage();
  directory = await mkdtemp(join(tmpdir(), 'berth-secrets-'));
  const vendorDataFile = join(directory, 'vendor.yaml');
  await writeFile(vendorDataFile, `#cloud-config\n# ${secrets.operator}\n`, { mode: 0o600 });
  fleet = await startFleet(join(directory, 'fleet'), {
    agent: { vendorDataFile, logLevel: 'debug' },
    server: { logLevel: 'debug' },
  });
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
}, 120_000);
afterAll(async () => {
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

it('reaches its guest, and is in no log, no process list and no list of instances', async () => {
  const userData = join(directory, 'user-data');
  await writeFile(userData, `#!/bin/sh\nsecret=${secrets.user}\necho "it has \${#secret} letters"\n`);
  const watched: string[] = [];
  const watching = new AbortController();
  const watch = (async () => {
    const { revision } = await fleet.client.list('instance');
    for await (const change of fleet.client.watch('instance', { revision }, watching.signal))
      watched.push(JSON.stringify(change));
  })().catch(() => {}); // ended by ourselves
  const processes = watchProcesses();
  const words = ['run', 'tiny', '--name', 'holder', '--cpus', '1', '--memory', '128M', '--user-data', userData];
  const ran = await runBerth([...words, '--wait'], fleet.environment);
  expect(ran).toMatchObject({ code: 0 });
  const commandLines = await processes.stop();

  const pieces: Uint8Array[] = [];
  for await (const piece of fleet.client.log('holder')) pieces.push(piece);
  expect(Buffer.concat(pieces).toString()).toContain(`it has ${secrets.user.length} letters`);
  const seed = await seedOf('holder');
  expect(seed.text).toContain(secrets.user);
  expect(seed.text).toContain(secrets.operator);
  expect(seed.mode & 0o077).toBe(0); // its guest's owner and root alone

  const listed = JSON.stringify(await fleet.client.list('instance'));
  const shown = await Promise.all(
    [['ps', '-o', 'json'], ['ps'], ['events'], ['get', 'instance', '-o', 'yaml'], ['explain', 'holder']].map((argv) =>
      runBerth(argv, fleet.environment),
    ),
  );
  watching.abort();
  await watch;
  expect(watched.join()).toContain('"holder"');
  expect(commandLines).toContain('qemu-system-x86_64');
  expect(listed).toContain('holder');
  const everything = {
    agent: fleet.agentSaid(),
    server: fleet.serverSaid(),
    commandLines,
    listed,
    watched: watched.join(),
    shown: JSON.stringify(shown),
    ran: JSON.stringify(ran),
  };
  for (const [where, text] of Object.entries(everything))
    for (const secret of Object.values(secrets)) expect(text.includes(secret), `${secret} in ${where}`).toBe(false);

  await fleet.client.delete('instance', 'holder');
  await fleet.gone('holder');
});

async function seedOf(name: string): Promise<{ readonly text: string; readonly mode: number }> {
  const { metadata } = await fleet.client.get('instance', name);
  const path = join(fleet.agentDirectory, 'qemu', metadata.id, 'seed.iso');
  return { text: await readFile(path, 'latin1'), mode: (await stat(path)).mode };
}

/** Looks at the command lines and environments of all that runs, again and again, until it is stopped; all that was seen. */
function watchProcesses() {
  const seen = new Set<string>();
  let stopped = false;
  const looking = (async () => {
    while (!stopped) {
      for (const pid of (await readdir('/proc')).filter(
        (entry) => /^\d+$/.test(entry) && entry !== String(process.pid),
      ))
        for (const what of ['cmdline', 'environ'])
          seen.add(await readFile(`/proc/${pid}/${what}`, 'utf8').catch(() => '')); // it has ended
      await new Promise((resolve) => setTimeout(resolve, 10)); // the others want to run, too
    }
  })();
  return {
    async stop(): Promise<string> {
      stopped = true;
      await looking;
      return [...seen].join('\n');
    },
  };
}
