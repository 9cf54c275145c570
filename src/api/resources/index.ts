// The registry of resources. A new one is a file and a line here; routes, documentation and client follow.

import { type Binding, bindingDefinition } from './binding.ts';
import { type Event, eventDefinition } from './event.ts';
import { type Group, groupDefinition } from './group.ts';
import { type Host, hostDefinition } from './host.ts';
import { type Image, imageDefinition } from './image.ts';
import { type Instance, instanceDefinition } from './instance.ts';
import { type Inventory, inventoryDefinition } from './inventory.ts';
import { type Job, jobDefinition } from './job.ts';
import { type JobTemplate, jobTemplateDefinition } from './job-template.ts';
import { type Pool, poolDefinition } from './pool.ts';
import { type Project, projectDefinition } from './project.ts';
import { type Role, roleDefinition } from './role.ts';
import { type Secret, secretDefinition } from './secret.ts';
import { type Size, sizeDefinition } from './size.ts';
import { type Spare, spareDefinition } from './spare.ts';
import { type Task, taskDefinition } from './task.ts';
import { type Token, tokenDefinition } from './token.ts';
import { type Volume, volumeDefinition } from './volume.ts';
import { type Workload, workloadDefinition } from './workload.ts';
import { type WarmPool, warmPoolDefinition } from './warm-pool.ts';
import { type Webhook, webhookDefinition } from './webhook.ts';

export const resourceDefinitions = {
  instance: instanceDefinition,
  host: hostDefinition,
  project: projectDefinition,
  image: imageDefinition,
  size: sizeDefinition,
  pool: poolDefinition,
  group: groupDefinition,
  workload: workloadDefinition,
  warmPool: warmPoolDefinition,
  task: taskDefinition,
  spare: spareDefinition,
  volume: volumeDefinition,
  job: jobDefinition,
  jobTemplate: jobTemplateDefinition,
  token: tokenDefinition,
  role: roleDefinition,
  binding: bindingDefinition,
  secret: secretDefinition,
  webhook: webhookDefinition,
  inventory: inventoryDefinition,
  event: eventDefinition,
} as const;

export interface ResourceByKind {
  instance: Instance;
  host: Host;
  project: Project;
  image: Image;
  size: Size;
  pool: Pool;
  group: Group;
  workload: Workload;
  warmPool: WarmPool;
  task: Task;
  spare: Spare;
  volume: Volume;
  job: Job;
  jobTemplate: JobTemplate;
  token: Token;
  role: Role;
  binding: Binding;
  secret: Secret;
  webhook: Webhook;
  inventory: Inventory;
  event: Event;
}

export type Kind = keyof ResourceByKind;
export type AnyResource = ResourceByKind[Kind];
