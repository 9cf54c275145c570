import { describe, expect, it } from 'vitest';
import { givePorts, projectNames } from './project-names.ts';

const guest = (address: string, name: string, project?: string) => ({
  ...{ address, name },
  ...(project === undefined ? {} : { project }),
});
const projects = projectNames([
  guest('10.77.0.5', 'web', 'red'),
  guest('10.77.0.6', 'web', 'blue'),
  guest('10.77.0.7', 'db', 'red'),
  guest('10.77.0.8', 'alone'),
]);
const [blue, red] = projects;

describe('the names of guests', () => {
  it('are of their project alone, and of no guest without one', () => {
    expect(blue?.hosts).toBe('10.77.0.6 web web.blue\n');
    expect(red?.hosts).toBe('10.77.0.5 web web.red\n10.77.0.7 db db.red\n');
    expect(red?.addresses).toEqual(['10.77.0.5', '10.77.0.7']);
    expect(projects).toHaveLength(2);
  });

  it('are served at ports that stay, and that are nobody else’s', async () => {
    const ports = async (
      remembered: readonly (readonly [string | undefined, number])[],
      busy: readonly number[] = [],
    ) =>
      (
        await givePorts(projects, {
          remembered: new Map(remembered.map(([key = '', port]) => [key, port])),
          isFree: async (port) => !busy.includes(port),
        })
      ).map(({ port }) => port);
    expect(await ports([])).toEqual([10_053, 10_054]);
    expect(await ports([[red?.key, 10_053]])).toEqual([10_054, 10_053]);
    expect(await ports([[blue?.key, 10_053]], [10_053, 10_054])).toEqual([10_053, 10_055]);
  });
});
