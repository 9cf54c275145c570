// For tests of the audit log: folders, settings, and what the files say.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { system, systemClock } from '../../base/system.ts';
import type { AuditSettings } from './audit.ts';
import { auditFiles } from './audit-folder.ts';
import { AuditLog, type AuditLogOptions } from './audit-log.ts';

/** Removed after the test. */
export function testFolder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'berth-audit-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function testSettings(directory: string, changes: Partial<AuditSettings> = {}): AuditSettings {
  return {
    directory,
    fileBytesMax: 1 << 20,
    keptMs: 86_400_000,
    reserveBytes: 4096,
    afterCallbacks: system.afterTurn,
    ...changes,
  };
}

export function testLog(directory: string, changes: Partial<AuditLogOptions> = {}): AuditLog {
  return new AuditLog({
    ...testSettings(directory),
    server: 'server',
    clock: systemClock,
    log: silentLogger,
    ...changes,
  });
}

/** Every line of all files. */
export function linesIn(directory: string): Record<string, unknown>[] {
  return textIn(directory)
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Record<string, unknown> => JSON.parse(line));
}

export function textIn(directory: string): string {
  return auditFiles(directory)
    .map(({ path }) => readFileSync(path, 'utf8'))
    .join('');
}
