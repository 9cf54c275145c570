import { describe, expect, it } from 'vitest';
import { agentIdentity } from './agent-identity.ts';

const id = `agent_${'b'.repeat(26)}`;

function file(text: string | null = null) {
  const kept = { text, writes: 0 };
  return {
    kept,
    read: () => Promise.resolve(kept.text),
    write: (next: string) => {
      kept.text = next;
      kept.writes += 1;
      return Promise.resolve();
    },
  };
}

describe("an agent's identity", () => {
  it('is made once, and written before it is told', async () => {
    const directory = file();
    expect(await agentIdentity({ file: directory, place: 'agent-id', makeId: () => id })).toBe(id);
    expect(directory.kept).toEqual({ text: `${id}\n`, writes: 1 });
    const another = () => `agent_${'c'.repeat(26)}`;
    expect(await agentIdentity({ file: directory, place: 'agent-id', makeId: another })).toBe(id);
    expect(directory.kept.writes).toBe(1);
  });

  it('is not told when it cannot be written', async () => {
    const full = { ...file(), write: () => Promise.reject(new Error('no space left on device')) };
    await expect(agentIdentity({ file: full, place: 'agent-id', makeId: () => id })).rejects.toThrow('no space left');
  });

  it.each(['', '\n', 'agent_short', `${id} ${id}`, `host_${'b'.repeat(26)}`])(
    'is never replaced where there is something else: %j',
    async (text) => {
      const damaged = file(text);
      const asked = agentIdentity({ file: damaged, place: '/data/agent-id', makeId: () => id });
      await expect(asked).rejects.toThrow(/cannot tell which agent this is: \/data\/agent-id .*berth host show/);
      expect(damaged.kept.text).toBe(text);
    },
  );
});
