import { describe, expect, it } from 'vitest';
import { type Handler, page, refusal, runBerth, testHost } from '../testing.ts';

const hosts: Handler = ({ path }) =>
  path === '/v1/hosts'
    ? page([
        testHost('h2', {
          status: { drivers: [{ name: 'zones', available: true, accelerator: 'none', version: 'r151054' }] },
        }),
        testHost('h1', {
          status: {
            drivers: [
              { name: 'qemu', available: true, accelerator: 'kvm' },
              { name: 'zones', available: false, reason: 'zoneadm is not installed' },
              { name: 'novel', available: true },
            ],
          },
        }),
      ])
    : undefined;

describe('berth driver ls', () => {
  it('shows what the program has, how it was proven, which hosts have it, and where it does not work', async () => {
    const { stdout, stderr, exitCode } = await runBerth(['driver', 'ls'], { handler: hosts });
    expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
      'NAME | GUESTS | VOLUMES | SUSPENDS | RUNS JOBS | PROVEN BY | HOSTS',
      'qemu | virtual machines, each a QEMU process of the agent | yes | also to disk | yes | conformance and faults against real QEMU | h1 (kvm)',
      'libvirt | virtual machines, each a domain of libvirt | yes | yes | yes | conformance and faults against real libvirt | -',
      'container | groups of containers of a Docker-compatible engine: podman, docker | yes | yes | no | conformance and faults against real podman | -',
      'zones | virtual machines, each a bhyve zone of an illumos host | no | no | no | recorded dialogues only; not run on illumos | h2',
      'fake | simulated guests, for tests and for trying Berth out | yes | yes | yes | the same conformance | -',
      'novel | this program does not have this driver | - | - | - | - | h1',
      'zones is not available on h1: zoneadm is not installed',
      '',
    ]);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  });

  it('prints all of it for programs, and names', async () => {
    const { stdout } = await runBerth(['driver', 'ls', '--json'], { handler: hosts });
    expect(JSON.parse(stdout)).toContainEqual({
      name: 'zones',
      summary: 'virtual machines, each a bhyve zone of an illumos host',
      proven: 'recorded dialogues only; not run on illumos',
      volumes: false,
      suspends: false,
      saves: false,
      runs: false,
      migrates: false,
      boots: false,
      checks: [],
      hosts: [
        { host: 'h1', available: false, reason: 'zoneadm is not installed' },
        { host: 'h2', available: true, accelerator: 'none', version: 'r151054' },
      ],
    });
    expect((await runBerth(['driver', 'ls', '-o', 'json'], { handler: hosts })).stdout).toBe(stdout);
    const names = await runBerth(['driver', 'ls', '-o', 'name'], { handler: hosts });
    expect(names.stdout).toBe('qemu\nlibvirt\ncontainer\nzones\nfake\nnovel\n');
  });

  it('names five hosts of many, and counts the others', async () => {
    const many = Array.from({ length: 8 }, (_, i) => testHost(`h${i}`));
    const { stdout } = await runBerth(['driver', 'ls'], { handler: () => page(many) });
    expect(stdout).toContain('h0 (tcg), h1 (tcg), h2 (tcg), h3 (tcg), h4 (tcg), and 3 more\n');
    expect(stdout).toContain('fake is not available on h4: off\nand 3 more: berth driver ls -o json\n');
  });

  it('tells of the drivers of the program when hosts cannot be asked for, and says so', async () => {
    const handler: Handler = () => refusal(403, 'Forbidden', 'hosts are for operators');
    const { stdout, stderr, exitCode } = await runBerth(['driver', 'ls'], { handler });
    expect(stdout).toMatch(/^zones .* recorded dialogues only; not run on illumos +\?$/m);
    expect(stderr).toContain('which hosts have them is not known: cannot list hosts: hosts are for operators');
    expect(exitCode).toBe(0);
    const { stdout: json } = await runBerth(['driver', 'ls', '--json'], { handler });
    expect(JSON.parse(json)).toContainEqual(expect.objectContaining({ name: 'qemu', hosts: null }));
  });
});
