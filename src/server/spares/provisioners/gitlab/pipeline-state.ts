// What the status of a GitLab pipeline means for a spare. Pure. A status that is not known counts as under way: GitLab adds some.
//
//   created, waiting_for_resource, preparing, pending, running, scheduled, manual ──▶ success, failed, canceled, skipped

export type PipelineState = 'running' | 'done' | 'failed';

const ended: Readonly<Record<string, PipelineState>> = {
  success: 'done',
  failed: 'failed',
  canceled: 'failed',
  skipped: 'failed',
};

export function pipelineState(status: string): PipelineState {
  return Object.hasOwn(ended, status) ? (ended[status] ?? 'running') : 'running';
}

/** For people who wait. */
export function pipelineNote(status: string): string {
  if (status === 'manual') return 'the pipeline waits for a person to start a manual job';
  if (status === 'waiting_for_resource') return 'the pipeline waits for a resource group';
  return `the pipeline is ${status}`;
}
