// Requests that arrive at once begin in turns.

import { expect, test } from 'vitest';
import { RequestTurns } from './request-turns.ts';

class TestConnection {
  paused = false;
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
}

function scene(perTurn: number) {
  const begun: string[] = [];
  let planned: (() => void)[] = [];
  const turns = new RequestTurns({ perTurn, afterTurn: (call) => planned.push(call) });
  return {
    begun,
    enter: (connection: TestConnection, name: string, sender: unknown = connection) =>
      turns.enter(
        connection,
        () => sender,
        () => begun.push(name),
      ),
    nextTurn() {
      const now = planned;
      planned = [];
      for (const call of now) call();
      return now.length > 0;
    },
  };
}

test('a single request of another connection begins in the turn after a burst', () => {
  const { begun, enter, nextTurn } = scene(2);
  const [flood, quiet] = [new TestConnection(), new TestConnection()];
  for (let i = 0; i < 6; i++) enter(flood, `f${i}`);
  enter(quiet, 'q');
  expect(begun).toEqual(['f0', 'f1']);
  nextTurn();
  expect(begun).toEqual(['f0', 'f1', 'f2', 'q']);
  while (nextTurn());
  expect(begun).toEqual(['f0', 'f1', 'f2', 'q', 'f3', 'f4', 'f5']);
});

test('after a quiet turn requests begin at once', () => {
  const { begun, enter, nextTurn } = scene(2);
  const connection = new TestConnection();
  for (const name of ['a', 'b']) enter(connection, name);
  nextTurn();
  enter(connection, 'c');
  expect(begun).toEqual(['a', 'b', 'c']);
});

test('a connection on which many wait is not read', () => {
  const { begun, enter, nextTurn } = scene(1);
  const connection = new TestConnection();
  for (let i = 0; i < 129; i++) enter(connection, `r${i}`);
  expect(connection.paused).toBe(false);
  enter(connection, 'last');
  expect(connection.paused).toBe(true);
  nextTurn();
  expect(connection.paused).toBe(false);
  while (nextTurn());
  expect(begun.at(-1)).toBe('last');
});

test('a sender with many connections has one turn, as one with a single connection', () => {
  const { begun, enter, nextTurn } = scene(2);
  for (let i = 0; i < 8; i++) enter(new TestConnection(), `f${i}`, 'flood');
  enter(new TestConnection(), 'q', 'quiet');
  nextTurn();
  expect(begun).toEqual(['f0', 'f1', 'f2', 'q']);
  while (nextTurn());
  expect(begun).toEqual(['f0', 'f1', 'f2', 'q', 'f3', 'f4', 'f5', 'f6', 'f7']);
});

test('the requests of a connection keep their order when its sender becomes known meanwhile', () => {
  const { begun, enter, nextTurn } = scene(1);
  const [busy, connection] = [new TestConnection(), new TestConnection()];
  enter(busy, 'b', 'other');
  for (const name of ['first', 'second']) enter(connection, name, 'an address');
  for (let i = 0; i < 3; i++) enter(new TestConnection(), `a${i}`, 'an address');
  nextTurn();
  enter(connection, 'third', 'a token');
  while (nextTurn());
  expect(begun.filter((name) => /^(first|second|third)$/.test(name))).toEqual(['first', 'second', 'third']);
  enter(connection, 'later', 'a token');
  expect(begun.at(-1)).toBe('later');
});
