// The program as a process: what only shows at its ends.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('ends only when a slow reader has got all of a long answer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-main-'));
  const trace = join(folder, 'trace.csv');
  const rows = Array.from({ length: 3_000 }, (_, i) => `i${i},${i * 60},${i * 60 + 30 * (1 + (i % 900))},1000,1024`);
  writeFileSync(trace, ['id,arrive_s,depart_s,cpu_milli,mem_mib', ...rows].join('\n'));
  try {
    const program = join(import.meta.dirname, 'main.ts');
    const words = [
      'sim',
      'replay',
      trace,
      '--fleet',
      '4x8GiB',
      '--profile',
      'best-fit,distribute-load,avoid-fragmentation',
      '--json',
    ];
    // A shell's pipe holds 64 KiB, and what does not fit in is written later.
    const line = '"$0" "$@" 2>/dev/null | cat';
    const child = spawn('sh', ['-c', line, process.execPath, program, ...words], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const parts: Buffer[] = [];
    for await (const part of child.stdout) parts.push(part);
    const text = Buffer.concat(parts).toString();
    expect(text.length).toBeGreaterThan(65_536);
    expect(JSON.parse(text)).toMatchObject([{ arrivals: 3_000 }, {}, { profile: 'avoid-fragmentation' }]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
