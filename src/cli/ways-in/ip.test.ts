import { describe, expect, it } from 'vitest';
import { runBerth, testInstance } from '../testing.ts';

const ipOf = (status: object) =>
  runBerth(['ip', 'web'], { handler: () => ({ json: testInstance('web', { status }) }) });
const guest = { state: 'running', ready: true, ports: [], phases: [] };

describe('berth ip', () => {
  it('prints an address that leads to the guest, and nothing else', async () => {
    const { stdout, stderr, exitCode } = await ipOf({ guest: { ...guest, address: '192.0.2.7' } });
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: '192.0.2.7\n', stderr: '', exitCode: 0 });
  });

  it("remarks that QEMU's own network leads nowhere, and what does", async () => {
    const { stdout, stderr, exitCode } = await ipOf({ guest: { ...guest, address: '10.0.2.15' } });
    expect({ stdout, exitCode }).toEqual({ stdout: '10.0.2.15\n', exitCode: 0 });
    expect(stderr).toContain('use "berth port-forward web PORT"');
  });

  it.each([
    ['that is not placed', { phase: 'Pending', host: undefined }, 'it is Pending; "berth explain web" says why'],
    ['that starts', { phase: 'Starting', guest }, 'it is Starting; "berth logs web" shows its progress'],
  ])('says of an instance %s where to look', async (_, status, advice) => {
    const { stderr, exitCode } = await ipOf(status);
    expect(stderr).toBe(`berth: the address of instance "web" is not known yet\n  ${advice}\n`);
    expect(exitCode).toBe(7);
  });
});
