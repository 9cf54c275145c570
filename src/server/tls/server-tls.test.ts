// Servers on one store have one authority: what is done to it through one of them, all of them follow.

import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from '../../api/parse.ts';
import { silentLogger } from '../../base/log.ts';
import { randomSecret } from '../../base/system.ts';
import { beginRotation, finishRotation } from '../../core/operations/access/authority-rotation.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { ServerConfig } from '../config.ts';
import { decideAndCommit } from '../decide.ts';
import { startTestServer } from '../testing.ts';
import { makeAuthority } from './certificates.ts';
import { ServerTls } from './server-tls.ts';

/** Two control planes over one store, each with its TLS identity. */
async function servers() {
  const store = createMemoryStore();
  const directory = await mkdtemp(join(tmpdir(), 'berth-tls-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const planes = [await startTestServer({ store }), await startTestServer({ store })];
  const opened = planes.map(async ({ plane: { decider } }, i) => {
    const dataDirectory = join(directory, `server-${i}`);
    const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory, store: 'memory:', tls: true });
    const tls = await ServerTls.open({ config, decider, randomSecret, log: silentLogger });
    tls.start(() => {});
    return { decider, tls };
  });
  const all = await Promise.all(opened);
  onTestFinished(async () => {
    for (const { tls } of all) await tls.stop();
    for (const [i, each] of planes.entries()) await (i === 0 ? each.drop() : each.close());
  });
  return all;
}

const issuerOf = ({ identity: { cert } }: ServerTls): string => new X509Certificate(cert).issuer;

it('two servers that start at once on an empty store have one authority, and follow its rotation through either', async () => {
  const [one, other] = await servers();
  if (!one || !other) return expect.unreachable();
  const both = [one.tls, other.tls];
  const old = one.tls.caFingerprint;
  expect(other.tls.caFingerprint).toBe(old);
  expect(both.map(({ identity }) => identity.ca)).toEqual([one.tls.identity.ca, one.tls.identity.ca]);
  expect(one.tls.identity.cert).not.toBe(other.tls.identity.cert);
  const oldIssuer = issuerOf(one.tls);

  const { clock } = one.decider;
  const made = await makeAuthority({ nowMs: Math.floor(clock.nowMs()), randomSecret });
  await decideAndCommit(one.decider, (snapshot, ctx) => beginRotation(snapshot, { made, overlapMs: 0 }, ctx));
  for (const tls of both) {
    await expect.poll(() => tls.identity.ca).toContain(made.root.certificate);
    expect(tls.authoritiesTold?.split(',')).toHaveLength(2);
    expect([tls.caFingerprint, issuerOf(tls)]).toEqual([old, oldIssuer]); // until it is finished
  }

  await decideAndCommit(other.decider, (snapshot, ctx) => finishRotation(snapshot, { force: false }, ctx));
  for (const tls of both) {
    await expect.poll(() => issuerOf(tls)).not.toBe(oldIssuer);
    expect(new X509Certificate(tls.identity.cert).checkIssued(new X509Certificate(made.servers.certificate))).toBe(
      true,
    );
    expect(tls.identity.ca).toBe(made.root.certificate);
    expect(tls.caFingerprint).not.toBe(old);
  }
  expect(one.tls.caFingerprint).toBe(other.tls.caFingerprint);
});
