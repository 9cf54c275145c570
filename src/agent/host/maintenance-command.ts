// Runs the maintenance command of this host, once for each order, and remembers that over restarts: a command that ends with a reboot must
// not run again after that reboot. What it runs is named by the host's own configuration, never by the control plane.

import { readFileSync } from 'node:fs';
import { Check } from 'typebox/value';
import { MaintenanceReport } from '../../api/resources/maintenance.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { runTool, type ToolResult } from './run-tool.ts';
import { writeWhole } from './write-whole.ts';

/** Longer than the updates of a system. The server has a deadline of its own. */
const timeoutMs = 4 * 3_600_000;
const outputMax = 500;

export class MaintenanceCommand {
  readonly #parts: { readonly command: readonly string[]; readonly file: string; clock: Clock; log: Logger };
  #report: MaintenanceReport | undefined;

  /** `file`: where the last order is kept. */
  constructor(parts: { readonly command: readonly string[]; readonly file: string; clock: Clock; log: Logger }) {
    this.#parts = parts;
    this.#report = readReport(parts.file);
  }

  get report(): MaintenanceReport | undefined {
    return this.#report;
  }

  begin(id: string): void {
    if (this.#report?.id === id) return;
    this.#report = { id, state: 'running' };
    void this.#run(id);
  }

  async #run(id: string): Promise<void> {
    const { command, clock, log } = this.#parts;
    const [program = '', ...words] = command;
    try {
      await this.#keep({ id, state: 'running' }); // before it can reboot this machine
      log.info('the maintenance command begins', { order: id, program });
      const result = await runTool(clock, { program, arguments: words, timeoutMs });
      const message = result.ok ? undefined : failureOf(result);
      if (message === undefined) log.info('the maintenance command has ended', { order: id });
      else log.error('the maintenance command has failed', { order: id, error: message });
      await this.#keep(message === undefined ? { id, state: 'finished' } : { id, state: 'failed', message });
    } catch (error) {
      const message = `its agent cannot remember the order: ${describeError(error)}`.slice(0, 1024);
      log.error('the maintenance command has not run', { order: id, error: message });
      this.#report = { id, state: 'failed', message };
    }
  }

  async #keep(report: MaintenanceReport): Promise<void> {
    await writeWhole(this.#parts.file, JSON.stringify(report));
    this.#report = report;
  }
}

function failureOf({ reason, exitCode, output }: Extract<ToolResult, { ok: false }>): string {
  const how = exitCode === undefined ? reason : `exit code ${exitCode}`;
  return `${how}: ${output.slice(-outputMax)}`;
}

function readReport(file: string): MaintenanceReport | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Check(MaintenanceReport, value) ? value : undefined;
  } catch {
    return undefined; // no order yet
  }
}
