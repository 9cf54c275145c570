// The tools for the maintenance of several hosts: the plan first, then the plan by its hash.

import { Type } from 'typebox';
import { RollOptions } from '../../../api/plans/host-roll.ts';
import { tool } from '../tool.ts';
import { cleanValue } from '../untrusted.ts';
import { closed } from './fields.ts';

const { maxAtOnce, stopOthers, movesMax, drainDeadlineMs, bootDeadlineMs, restore, pool, hosts } =
  RollOptions.properties;
const fields = {
  ...{ pool, hosts },
  maxAtOnce: Type.Optional(maxAtOnce),
  stopOthers: Type.Optional(stopOthers),
  movesMax: Type.Optional(movesMax),
  drainDeadlineMs: Type.Optional(drainDeadlineMs),
  bootDeadlineMs: Type.Optional(bootDeadlineMs),
  restore: Type.Optional(restore),
};

export const planRollTool = tool({
  name: 'plan_roll',
  title: 'Plan the maintenance of several hosts',
  description:
    'Says in which groups the hosts of a pool, or named hosts, can be emptied and rebooted, what happens to the instances on each, and which hosts are left out and why. Nothing is changed. Answers the planHash that "roll" needs.',
  input: Type.Object(fields, closed),
  async run(options, { client }) {
    const { plan } = await client.rollHosts(options);
    return { facts: { planHash: plan?.hash }, untrusted: cleanValue({ plan }) };
  },
});

export const rollTool = tool({
  name: 'roll',
  title: 'Empty and reboot several hosts',
  description:
    'Carries out the plan that "plan_roll" answered, with the same arguments: group by group, hosts are emptied, rebooted and opened. Refused when the plan is another by now.',
  input: Type.Object({ ...fields, planHash: Type.String({ minLength: 8, maxLength: 64 }) }, closed),
  writes: true,
  destructive: true,
  async run({ planHash, ...options }, { client }) {
    const { roll } = await client.rollHosts({ ...options, apply: planHash });
    return { facts: { phase: roll?.phase }, untrusted: cleanValue({ roll }) };
  },
});
