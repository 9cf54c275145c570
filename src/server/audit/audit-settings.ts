// The audit log of a process, by its configuration.

import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { mebibyte } from '../../base/bytes.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { ServerConfig } from '../config.ts';
import type { AuditSettings } from './audit.ts';
import { LineCopies, SyslogCopies } from './line-copies.ts';

/** Enough for all that is under way when the disk becomes full. */
const reserveBytes = 4 * mebibyte;

/** Undefined: none is kept. */
export function auditOf(
  config: ServerConfig,
  parts: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly stdout: Writable;
    readonly afterCallbacks: (run: () => void) => void;
  },
): AuditSettings | undefined {
  const { audit, auditDirectory, auditFileMiBMax, auditKeptMs, auditCopy, dataDirectory } = config;
  const { clock, log, stdout, afterCallbacks } = parts;
  if (!audit) {
    log.warn('no audit log is kept: "audit" is false');
    return undefined;
  }
  const syslog = auditCopy === 'syslog' ? new SyslogCopies({ clock, log }) : undefined;
  const copy = auditCopy === 'stdout' ? new LineCopies(stdout).take : syslog?.take;
  return {
    directory: auditDirectory ?? join(dataDirectory, 'audit'),
    fileBytesMax: auditFileMiBMax * mebibyte,
    keptMs: auditKeptMs,
    reserveBytes,
    afterCallbacks,
    copy,
    ...(syslog ? { stopCopies: () => syslog.stop() } : {}),
  };
}
