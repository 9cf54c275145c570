import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runMuseum } from './museum.ts';
import { plantedBugs } from './planted-bugs.ts';

const jobs = Math.max(1, availableParallelism() - 1);

describe('the museum', { timeout: 1_200_000 }, () => {
  it('catches each as what it is', async () => {
    const pieces: string[] = [];
    const out = { write: (piece: string) => pieces.push(piece) };
    const text = (): string => pieces.join('');
    const exitCode = await runMuseum({ quick: true, jobs, firstSeed: 1 }, out);
    process.stdout.write(text()); // how many runs each needed
    expect({ exitCode, text: text() }).toMatchObject({ exitCode: 0 });
    expect(text()).toContain(`${plantedBugs.length} of ${plantedBugs.length} planted bugs caught`);
  });
});
