// Which operation answers which verb of which kind. A new kind that users may write has a line here.

import { parse } from '../../../api/parse.ts';
import { BindingSpec } from '../../../api/resources/binding.ts';
import { GroupSpec } from '../../../api/resources/group.ts';
import { HostSpec } from '../../../api/resources/host.ts';
import { ImageSpec } from '../../../api/resources/image.ts';
import type { Kind } from '../../../api/resources/index.ts';
import { InstanceSpec } from '../../../api/resources/instance.ts';
import { InventorySpec } from '../../../api/resources/inventory.ts';
import { JobSpec } from '../../../api/resources/job.ts';
import { JobTemplateSpec } from '../../../api/resources/job-template.ts';
import type { Labels } from '../../../api/resources/metadata.ts';
import { PoolSpec } from '../../../api/resources/pool.ts';
import { ProjectSpec } from '../../../api/resources/project.ts';
import { RoleSpec } from '../../../api/resources/role.ts';
import { SecretSpec } from '../../../api/resources/secret.ts';
import { SizeSpec } from '../../../api/resources/size.ts';
import { WorkloadSpec } from '../../../api/resources/workload.ts';
import { WarmPoolSpec } from '../../../api/resources/warm-pool.ts';
import { SpareSpec } from '../../../api/resources/spare.ts';
import { TaskSpec } from '../../../api/resources/task.ts';
import { WebhookSpec } from '../../../api/resources/webhook.ts';
import { VolumeSpec } from '../../../api/resources/volume.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Decision } from '../../../core/operations/decision.ts';
import { createPool, replacePool } from '../../../core/operations/pool.ts';
import {
  createPlainResource,
  deletePlainResource,
  type PlainKind,
  type PlainSpec,
  replacePlainResource,
} from '../../../core/operations/plain-resource.ts';
import { createHost, deleteHost, replaceHost } from '../../../core/operations/host.ts';
import { createInstance, replaceInstance } from '../../../core/operations/instance.ts';
import { deleteByOwner } from '../../../core/operations/instances/delete-by-owner.ts';
import {
  createJobTemplate,
  deleteJobTemplate,
  replaceJobTemplate,
} from '../../../core/operations/job-templates/job-template.ts';
import { deleteJob } from '../../../core/operations/jobs/job.ts';
import { submitJob } from '../../../core/operations/jobs/submit-job.ts';
import { revokeToken } from '../../../core/operations/access/token.ts';
import { createSecret, deleteSecret, replaceSecret } from '../../../core/operations/secret.ts';
import { createWorkload, deleteWorkload, replaceWorkload } from '../../../core/operations/workloads/workload.ts';
import { createWarmPool, deleteWarmPool, replaceWarmPool } from '../../../core/operations/warm-pools/warm-pool.ts';
import { createSpare, releaseSpare } from '../../../core/operations/spares/spare.ts';
import { createTask, deleteTask } from '../../../core/operations/task.ts';
import { createVolume, deleteVolume, replaceVolume } from '../../../core/operations/volumes/volume.ts';
import { createInventory, deleteInventory, replaceInventory } from '../../../core/operations/inventory/inventory.ts';
import { createWebhook, deleteWebhook, replaceWebhook } from '../../../core/operations/webhooks/webhook.ts';
import { withHiddenKept } from './hidden-values.ts';
import type { Context } from '../../../core/state/context.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';

export interface ResourceInput {
  readonly project: string;
  readonly name: string;
  readonly labels: Labels;
  /** Of the kind's schema; parsed again here, where its type is known. */
  readonly spec: unknown;
  readonly idempotencyKey?: string;
  readonly ifRevision?: number;
}

export interface DeleteInput {
  readonly project: string;
  readonly name: string;
  readonly ifRevision?: number;
  readonly force: boolean;
  readonly apply?: string;
}

interface Operations {
  create(snapshot: Snapshot, input: ResourceInput, ctx: Context): Decision;
  replace(snapshot: Snapshot, input: ResourceInput, ctx: Context): Decision;
  delete(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision;
}

const refuse = (): never => {
  throw new ApiError('MethodNotAllowed', 'only Berth writes these');
};

export const resourceOperations: Readonly<Record<Kind, Operations>> = {
  instance: {
    create: (snapshot, input, ctx) =>
      createInstance(
        snapshot,
        { ...input, spec: parse(InstanceSpec, withHiddenKept(input.spec, undefined), 'spec') },
        ctx,
      ),
    replace: (snapshot, input, ctx) =>
      replaceInstance(snapshot, { ...input, spec: parse(InstanceSpec, input.spec, 'spec') }, ctx),
    delete: deleteByOwner,
  },
  host: {
    create: (snapshot, input, ctx) =>
      createHost(snapshot, { ...input, spec: parse(HostSpec, input.spec, 'spec') }, ctx),
    replace: (snapshot, input, ctx) =>
      replaceHost(snapshot, { ...input, spec: parse(HostSpec, input.spec, 'spec') }, ctx),
    delete: deleteHost,
  },
  project: plainOperations('project', (spec) => parse(ProjectSpec, spec, 'spec')),
  image: plainOperations('image', (spec) => parse(ImageSpec, spec, 'spec')),
  size: plainOperations('size', (spec) => parse(SizeSpec, spec, 'spec')),
  pool: {
    ...plainOperations('pool', (spec) => parse(PoolSpec, spec, 'spec')),
    create: (snapshot, input, ctx) =>
      createPool(snapshot, { ...input, spec: parse(PoolSpec, input.spec, 'spec') }, ctx),
    replace: (snapshot, input, ctx) =>
      replacePool(snapshot, { ...input, spec: parse(PoolSpec, input.spec, 'spec') }, ctx),
  },
  task: {
    create: (snapshot, input, ctx) =>
      createTask(snapshot, { ...input, spec: parse(TaskSpec, input.spec, 'spec') }, ctx),
    replace() {
      throw new ApiError('MethodNotAllowed', 'a task cannot be changed; create another');
    },
    delete: deleteTask,
  },
  workload: {
    create: (snapshot, input, ctx) =>
      createWorkload(
        snapshot,
        { ...input, spec: parse(WorkloadSpec, withHiddenKept(input.spec, undefined), 'spec') },
        ctx,
      ),
    replace: (snapshot, input, ctx) =>
      replaceWorkload(snapshot, { ...input, spec: parse(WorkloadSpec, input.spec, 'spec') }, ctx),
    delete: deleteWorkload,
  },
  warmPool: {
    create: (snapshot, input, ctx) =>
      createWarmPool(
        snapshot,
        { ...input, spec: parse(WarmPoolSpec, withHiddenKept(input.spec, undefined), 'spec') },
        ctx,
      ),
    replace: (snapshot, input, ctx) =>
      replaceWarmPool(snapshot, { ...input, spec: parse(WarmPoolSpec, input.spec, 'spec') }, ctx),
    delete: deleteWarmPool,
  },
  spare: {
    create: (snapshot, input, ctx) =>
      createSpare(snapshot, { ...input, spec: parse(SpareSpec, input.spec, 'spec') }, ctx),
    replace() {
      throw new ApiError('MethodNotAllowed', 'a spare cannot be changed; prepare another');
    },
    delete: releaseSpare,
  },
  volume: {
    create: (snapshot, input, ctx) =>
      createVolume(snapshot, { ...input, spec: parse(VolumeSpec, input.spec, 'spec') }, ctx),
    replace: (snapshot, input, ctx) =>
      replaceVolume(snapshot, { ...input, spec: parse(VolumeSpec, input.spec, 'spec') }, ctx),
    delete: deleteVolume,
  },
  job: {
    create(snapshot, input, ctx) {
      const spec = parse(JobSpec, withHiddenKept(input.spec, undefined), 'spec');
      // They tell Berth what to send, and where: only those who took a message or a webhook may say so.
      for (const field of ['request', 'forge'] as const) {
        if (spec[field] === undefined) continue;
        const message = `spec.${field} is set by Berth when a message or a webhook makes a job; leave it out`;
        throw new ApiError('InvalidRequest', message, { field: `spec.${field}` });
      }
      return submitJob(snapshot, { ...input, spec }, ctx);
    },
    replace() {
      throw new ApiError('MethodNotAllowed', 'a job cannot be changed; cancel it and create another');
    },
    delete: deleteJob,
  },
  jobTemplate: {
    create: (snapshot, input, ctx) =>
      createJobTemplate(
        snapshot,
        { ...input, spec: parse(JobTemplateSpec, withHiddenKept(input.spec, undefined), 'spec') },
        ctx,
      ),
    replace: (snapshot, input, ctx) =>
      replaceJobTemplate(snapshot, { ...input, spec: parse(JobTemplateSpec, input.spec, 'spec') }, ctx),
    delete: deleteJobTemplate,
  },
  group: plainOperations('group', (spec) => parse(GroupSpec, spec, 'spec')),
  role: plainOperations('role', (spec) => parse(RoleSpec, spec, 'spec')),
  binding: plainOperations('binding', (spec) => parse(BindingSpec, spec, 'spec')),
  token: { create: refuse, replace: refuse, delete: revokeToken },
  secret: {
    create: (snapshot, input, ctx) =>
      createSecret(snapshot, { ...input, spec: parse(SecretSpec, input.spec, 'spec') }, ctx),
    replace: (snapshot, input, ctx) =>
      replaceSecret(snapshot, { ...input, spec: parse(SecretSpec, input.spec, 'spec') }, ctx),
    delete: deleteSecret,
  },
  webhook: {
    create: (snapshot, input, ctx) =>
      createWebhook(snapshot, { ...input, spec: parse(WebhookSpec, input.spec, 'spec') }, ctx),
    replace: (snapshot, input) => replaceWebhook(snapshot, { ...input, spec: parse(WebhookSpec, input.spec, 'spec') }),
    delete: deleteWebhook,
  },
  inventory: {
    create: (snapshot, input, ctx) =>
      createInventory(snapshot, { ...input, spec: parse(InventorySpec, input.spec, 'spec') }, ctx),
    replace: (snapshot, input) =>
      replaceInventory(snapshot, { ...input, spec: parse(InventorySpec, input.spec, 'spec') }),
    delete: deleteInventory,
  },
  event: { create: refuse, replace: refuse, delete: refuse },
};

function plainOperations<K extends PlainKind>(kind: K, parseSpec: (spec: unknown) => PlainSpec<K>): Operations {
  return {
    create: (snapshot, input, ctx) =>
      createPlainResource(snapshot, kind, { ...input, spec: parseSpec(input.spec) }, ctx),
    replace: (snapshot, input) => replacePlainResource(snapshot, kind, { ...input, spec: parseSpec(input.spec) }),
    delete: (snapshot, input, ctx) => deletePlainResource(snapshot, kind, input, ctx),
  };
}
