import { describe, expect, it } from 'vitest';
import { Acknowledgements } from './acknowledgements.ts';

function scene() {
  const sent: string[] = [];
  const turns: (() => void)[] = [];
  const channel = {
    active: true,
    basicAck: ({ deliveryTag, multiple }: { deliveryTag?: number; multiple?: boolean }): void =>
      void sent.push(`${multiple ? 'up to ' : ''}${deliveryTag}`),
  };
  const acknowledgements = new Acknowledgements(channel, (run) => turns.push(run));
  return {
    channel,
    sent,
    finish(...tags: number[]): void {
      for (const tag of tags) acknowledgements.add(tag);
      for (const turn of turns.splice(0)) turn();
    },
  };
}

describe('acknowledgements', () => {
  it.each([
    ['one', [[1]], ['up to 1']],
    ['many of a turn, in any order', [[3, 1, 2]], ['up to 3']],
    ['with a gap', [[2, 4], [1]], ['2', '4', 'up to 1']],
    ['across a gap that closes', [[2, 3], [1, 4], [5]], ['2', '3', 'up to 4', 'up to 5']],
    ['turn by turn', [[1], [2], [3]], ['up to 1', 'up to 2', 'up to 3']],
  ])('go out: %s', (_name, turns, expected) => {
    const { sent, finish } = scene();
    for (const tags of turns) finish(...tags);
    expect(sent).toEqual(expected);
  });

  it('are dropped on a closed channel', () => {
    const { channel, sent, finish } = scene();
    channel.active = false;
    finish(1, 2);
    expect(sent).toEqual([]);
  });
});
