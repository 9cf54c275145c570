import { describe, expect, it } from 'vitest';
import { answersOf, faultOf, planCommand, planForms, type PlanVerb } from './plan-forms.ts';

const asked = (verb: PlanVerb, query: string) => answersOf(planForms[verb], new URLSearchParams(query));

describe('the answers in an address', () => {
  it.each([
    ['drain', 'host=h1&movesMax=2&deadline=60', { host: 'h1' }],
    ['drain', 'host=h1&movesMax=5&other=x', { host: 'h1', movesMax: '5' }],
    ['resize', 'instance=a&project=default', { instance: 'a', project: 'default' }],
  ] as const)('of %s %s', (verb, query, answers) => {
    expect(asked(verb, query)).toEqual(answers);
  });

  it.each([
    ['drain', '', 'Host is missing'],
    ['drain', 'host=h1&movesMax=0', 'Moves at a time must be an integer of at least 1'],
    ['drain', 'host=h1&movesMax=x', 'Moves at a time must be an integer of at least 1'],
    ['scale', 'workload=w&replicas=0', undefined],
    ['rebalance', '', undefined],
    ['resize', 'instance=a', 'fill in one of: CPUs, Memory, Disk, Size'],
  ] as const)('of %s "%s" are refused: %s', (verb, query, fault) => {
    expect(faultOf(planForms[verb], asked(verb, query))).toBe(fault);
  });
});

describe('the command', () => {
  it.each([
    ['drain', 'host=h1', undefined, 'berth host drain h1'],
    [
      'drain',
      'host=h1&stopOthers=true&movesMax=5&deadline=90&atDeadline=stop',
      'abc',
      'berth host drain h1 --moves-max 5 --deadline 90m --at-deadline stop --stop-others --apply abc',
    ],
    ['evacuate', 'host=h1', 'abc', 'berth host evacuate h1 --apply abc'],
    ['rebalance', 'pool=ci&coolDown=0', 'abc', 'berth rebalance --pool ci --cool-down 0m --apply abc'],
    [
      'migrate',
      'instance=a&project=p&bandwidth=100',
      'abc',
      'berth migrate a --bandwidth 100MiB --apply abc --project p',
    ],
    ['resize', 'instance=a&project=default&memory=512', 'abc', 'berth resize a --memory 512MiB --apply abc'],
    ['scale', 'workload=w&replicas=3', undefined, 'berth workload scale w 3 --dry-run'],
    ['scale', 'workload=w&replicas=3', 'abc', 'berth workload scale w 3 --apply abc'],
    ['undo', 'workload=w&to=2', undefined, 'berth workload undo w --to 2 --dry-run'],
    ['undo', 'workload=w&to=2', 'abc', 'berth workload undo w --to 2 --apply abc'],
    ['update', 'workload=w&image=b&memory=512', 'abc', 'berth workload update w --image b --memory 512MiB --apply abc'],
    ['remove', 'name=ci', undefined, 'berth pool rm ci --dry-run'],
    ['remove', 'kind=image&name=tiny', 'abc', 'berth image rm tiny --apply abc'],
  ] as const)('of %s %s, by %s: %s', (verb, query, hash, command) => {
    expect(planCommand(verb, asked(verb, query), hash)).toBe(command);
  });
});
