import { describe, expect, it } from 'vitest';
import { instances } from '../test-fleet.ts';
import { type Handler, runBerth, testInstance } from '../testing.ts';

describe('berth show', () => {
  it('tells on a page what people ask of an instance', async () => {
    const web = testInstance('web', {
      metadata: { labels: { tier: 'web' } },
      spec: { cpus: 2, memoryMiB: 2048, volumes: [{ name: 'data', readOnly: true }] },
      status: {
        restartCount: 1,
        guest: {
          ready: true,
          address: '192.168.122.17',
          ports: [{ hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
        },
      },
    });
    const { stdout, requests } = await runBerth(['show', 'web'], { handler: () => ({ json: web }) });
    expect(requests[0]).toMatchObject({ method: 'GET', path: '/v1/instances/web' });
    expect(stdout.split('\n').map((line) => line.trim().replace(/ {2,}/, ' | '))).toEqual([
      'web | Running, ready',
      'host | h1',
      'address | 192.168.122.17',
      'port | 127.0.0.1:8080 on h1 -> 80/tcp',
      'image | tiny',
      'cpus | 2',
      'memory | 2 GiB',
      'volume | data, read only',
      'label | tier=web',
      'restarts | 1',
      'age | 90s',
      'more | berth explain web, berth events web, berth get instance web -o yaml',
      '',
    ]);
  });

  it('says why one waits, and gives programs all of it', async () => {
    const handler: Handler = () => ({ json: instances[1] });
    expect((await runBerth(['show', 'big'], { handler })).stdout).toMatch(/^big {2}Pending\n {2}why +0 of/);
    expect(JSON.parse((await runBerth(['show', 'big', '-o', 'json'], { handler })).stdout)).toMatchObject({
      metadata: { name: 'big' },
    });
  });
});
