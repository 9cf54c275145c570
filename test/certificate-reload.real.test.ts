// A server process reloads its certificate files at SIGHUP, without a restart.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../src/base/test-ports.ts';
import { makeCertificate } from './certificate.ts';
import { startBerth } from './processes.ts';

async function connected(port: number): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

async function shownAt(port: number): Promise<string> {
  const socket = await connected(port);
  const { fingerprint256 } = new X509Certificate(socket.getPeerCertificate().raw);
  socket.destroy();
  return fingerprint256;
}

it('certificate files are read again at SIGHUP, and damaged ones are not taken', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-reload-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [first, second] = ['first', 'second'].map((name) => {
    mkdirSync(join(directory, name));
    return makeCertificate(join(directory, name));
  });
  if (!first || !second) return expect.unreachable();
  const files = { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  const install = (from: typeof first): void => {
    copyFileSync(from.key, files.key);
    copyFileSync(from.certificate, files.certificate);
  };
  const digest = ({ certificate }: typeof first) => new X509Certificate(readFileSync(certificate)).fingerprint256;
  install(first);
  const port = await freePort();
  const config = join(directory, 'server.yaml');
  const settings = { tlsCertificate: files.certificate, tlsKey: files.key, dataDirectory: join(directory, 'data') };
  writeFileSync(config, JSON.stringify({ listen: `127.0.0.1:${port}`, ...settings }));
  const server = await startBerth(['server', '--config', config], /listens on/);
  onTestFinished(() => server.stop());
  expect(await shownAt(port)).toBe(digest(first));
  const open = await connected(port);
  onTestFinished(() => void open.destroy());

  install(second);
  process.kill(server.pid, 'SIGHUP');
  await expect.poll(() => shownAt(port), { timeout: 20_000 }).toBe(digest(second));
  open.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const [answer] = await once(open, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200/); // a connection from before goes on

  writeFileSync(files.certificate, 'damaged');
  process.kill(server.pid, 'SIGHUP');
  await expect.poll(() => server.said(), { timeout: 20_000 }).toContain('the present one is kept');
  expect(await shownAt(port)).toBe(digest(second));
}, 60_000);
