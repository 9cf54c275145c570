// The tools that empty a host, and that bring back what has left it: the plan first, then the plan by its hash.

import { Type } from 'typebox';
import { DrainOptions } from '../../../api/plans/host-plan.ts';
import { RestoreOptions } from '../../../api/plans/host-restore.ts';
import { tool } from '../tool.ts';
import { cleanValue } from '../untrusted.ts';
import { closed, name } from './fields.ts';

const { stopOthers, movesMax, deadlineMs, atDeadline } = DrainOptions.properties;
const drainFields = {
  host: Type.String({ ...name, description: 'name of the host' }),
  stopOthers: Type.Optional(stopOthers),
  movesMax: Type.Optional(movesMax),
  deadlineMs: Type.Optional(deadlineMs),
  atDeadline: Type.Optional(atDeadline),
};

export const planDrainTool = tool({
  name: 'plan_drain',
  title: 'Plan to empty a host',
  description:
    'Says for each instance of a host what a drain does with it, where it would go, what cannot leave and why, and whether the fleet then survives the loss of one host. Nothing is changed. Answers the planHash that "drain" needs.',
  input: Type.Object(drainFields, closed),
  async run({ host, ...options }, { client }) {
    const { plan } = await client.drainHost(host, options);
    return { facts: { planHash: plan?.hash }, untrusted: cleanValue({ plan }) };
  },
});

export const drainTool = tool({
  name: 'drain',
  title: 'Empty a host',
  description:
    'Carries out the plan that "plan_drain" answered, with the same arguments. Refused when the plan is another by now: the refusal says what has changed.',
  input: Type.Object({ ...drainFields, planHash: Type.String({ minLength: 8, maxLength: 64 }) }, closed),
  writes: true,
  destructive: true,
  async run({ host, planHash, ...options }, { client }) {
    const { drain } = await client.drainHost(host, { ...options, apply: planHash });
    return { facts: { phase: drain?.phase }, untrusted: cleanValue({ drain }) };
  },
});

const restoreFields = {
  host: Type.String({ ...name, description: 'name of the host' }),
  movesMax: Type.Optional(RestoreOptions.properties.movesMax),
  deadlineMs: Type.Optional(RestoreOptions.properties.deadlineMs),
};

export const planRestoreTool = tool({
  name: 'plan_restore',
  title: 'Plan to bring back what has left a host',
  description:
    'Says which instances that drains have moved away from a host return to it, how, and which cannot and why. The host must be open. Nothing is changed. Answers the planHash that "restore" needs.',
  input: Type.Object(restoreFields, closed),
  async run({ host, ...options }, { client }) {
    const { plan } = await client.restoreHost(host, options);
    return { facts: { planHash: plan?.hash }, untrusted: cleanValue({ plan }) };
  },
});

export const restoreTool = tool({
  name: 'restore',
  title: 'Bring back what has left a host',
  description:
    'Carries out the plan that "plan_restore" answered, with the same arguments. Refused when the plan is another by now.',
  input: Type.Object({ ...restoreFields, planHash: Type.String({ minLength: 8, maxLength: 64 }) }, closed),
  writes: true,
  destructive: true,
  async run({ host, planHash, ...options }, { client }) {
    const { restore } = await client.restoreHost(host, { ...options, apply: planHash });
    return { facts: { phase: restore?.phase }, untrusted: cleanValue({ restore }) };
  },
});
