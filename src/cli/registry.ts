// The commands. A new one is a file and a line here; a file is loaded only when its command is run or its help is
// shown.

import type { Command } from 'commander';
import type { Cli } from './cli.ts';

export interface CommandEntry {
  /** `ps`, or two words for a command below another entry: `image build`. */
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  readonly aliases?: readonly string[];
  readonly load: () => Promise<(cli: Cli) => Command>;
}

const daily = 'Instances:';
const fleet = 'Fleet:';
const jobs = 'Jobs:';
const access = 'Access:';
const local = 'This program:';

export const commandEntries: readonly CommandEntry[] = [
  {
    name: 'run',
    group: daily,
    summary: 'Create and start an instance',
    load: async () => (await import('./instances/run.ts')).runCommand,
  },
  {
    name: 'ps',
    group: daily,
    summary: 'Show instances',
    aliases: ['ls', 'list'],
    load: async () => (await import('./instances/ps.ts')).psCommand,
  },
  {
    name: 'show',
    group: daily,
    summary: 'Show the status, host and settings of an instance',
    load: async () => (await import('./instances/show.ts')).showCommand,
  },
  {
    name: 'logs',
    group: daily,
    summary: "Show an instance's console",
    load: async () => (await import('./ways-in/logs.ts')).logsCommand,
  },
  {
    name: 'ssh',
    group: daily,
    summary: 'Log in to an instance by ssh',
    load: async () => (await import('./ways-in/ssh.ts')).sshCommand,
  },
  {
    name: 'exec',
    group: daily,
    summary: 'Run a command inside an instance',
    load: async () => (await import('./ways-in/exec.ts')).execCommand,
  },
  {
    name: 'console',
    group: daily,
    summary: "Attach to an instance's serial console",
    load: async () => (await import('./ways-in/console.ts')).consoleCommand,
  },
  {
    name: 'port-forward',
    group: daily,
    summary: 'Forward local ports to an instance',
    load: async () => (await import('./ways-in/port-forward.ts')).portForwardCommand,
  },
  {
    name: 'cp',
    group: daily,
    summary: 'Copy files to or from an instance',
    load: async () => (await import('./ways-in/cp.ts')).cpCommand,
  },
  {
    name: 'screenshot',
    group: daily,
    summary: "Take a picture of an instance's screen",
    load: async () => (await import('./ways-in/screenshot.ts')).screenshotCommand,
  },
  {
    name: 'vnc',
    group: daily,
    summary: "Forward an instance's screen to a local port, for a VNC viewer",
    load: async () => (await import('./ways-in/vnc.ts')).vncCommand,
  },
  {
    name: 'ip',
    group: daily,
    summary: "Print an instance's address",
    load: async () => (await import('./ways-in/ip.ts')).ipCommand,
  },
  {
    name: 'explain',
    group: daily,
    summary: 'Explain the placement of an instance, host by host',
    load: async () => (await import('./instances/explain.ts')).explainCommand,
  },
  {
    name: 'plan',
    group: daily,
    summary: 'Show what a command would do, without doing it',
    load: async () => (await import('./instances/plan.ts')).planCommand,
  },
  {
    name: 'candidates',
    group: daily,
    summary: 'Show the hosts that fit a request',
    load: async () => (await import('./fleet/candidates.ts')).candidatesCommand,
  },
  {
    name: 'reserve',
    group: daily,
    summary: 'Reserve resources for a limited time, without an instance',
    load: async () => (await import('./fleet/reserve.ts')).reserveCommand,
  },
  {
    name: 'stop',
    group: daily,
    summary: 'Power instances off, keeping their disks',
    load: async () => (await import('./instances/power.ts')).stopCommand,
  },
  {
    name: 'start',
    group: daily,
    summary: 'Start instances that are stopped or have ended, with their disks',
    load: async () => (await import('./instances/power.ts')).startCommand,
  },
  {
    name: 'restart',
    group: daily,
    summary: 'Power instances off and on again, keeping their disks',
    load: async () => (await import('./instances/power.ts')).restartCommand,
  },
  {
    name: 'suspend',
    group: daily,
    summary: 'Suspend running instances, keeping their memory',
    load: async () => (await import('./instances/power.ts')).suspendCommand,
  },
  {
    name: 'resume',
    group: daily,
    summary: 'Resume suspended instances',
    load: async () => (await import('./instances/power.ts')).resumeCommand,
  },
  {
    name: 'rm',
    group: daily,
    summary: 'Remove instances',
    load: async () => (await import('./instances/rm.ts')).rmCommand,
  },
  {
    name: 'extend',
    group: daily,
    summary: 'Extend the time until an instance expires',
    load: async () => (await import('./instances/extend.ts')).extendCommand,
  },
  {
    name: 'resize',
    group: daily,
    summary: 'Change the CPUs, the memory or the disk of an instance',
    load: async () => (await import('./instances/resize.ts')).resizeCommand,
  },
  {
    name: 'migrate',
    group: daily,
    summary: 'Move an instance to another host',
    load: async () => (await import('./instances/migrate.ts')).migrateCommand,
  },
  {
    name: 'protect',
    group: daily,
    summary: 'Protect instances from deletion',
    load: async () => (await import('./instances/protect.ts')).protectCommand,
  },
  {
    name: 'unprotect',
    group: daily,
    summary: 'Allow deletion of protected instances again',
    load: async () => (await import('./instances/protect.ts')).unprotectCommand,
  },
  {
    name: 'events',
    group: daily,
    summary: 'Show events',
    load: async () => (await import('./instances/events.ts')).eventsCommand,
  },
  {
    name: 'apply',
    group: fleet,
    summary: 'Create and change resources to match files',
    load: async () => (await import('./apply/apply.ts')).applyCommand,
  },
  {
    name: 'diff',
    group: fleet,
    summary: 'Show what "berth apply" would change',
    load: async () => (await import('./apply/apply.ts')).diffCommand,
  },
  {
    name: 'get',
    group: daily,
    summary: 'Show one resource, or all of a kind',
    load: async () => (await import('./get.ts')).getCommand,
  },
  {
    name: 'job',
    group: jobs,
    summary: 'Jobs: run a command once in a fresh instance, show, cancel, retry',
    load: async () => (await import('./jobs/job.ts')).jobCommand,
  },
  {
    name: 'job-template',
    group: jobs,
    summary: 'Job templates: jobs that are created on request or at times',
    load: async () => (await import('./jobs/job-template.ts')).jobTemplateCommand,
  },
  {
    name: 'enqueue',
    group: jobs,
    summary: 'Request a job that runs a file of a repository, through the broker or the API',
    load: async () => (await import('./jobs/enqueue.ts')).enqueueCommand,
  },
  {
    name: 'dlq',
    group: jobs,
    summary: 'Dead letters: show, retry, drop',
    load: async () => (await import('./jobs/dlq.ts')).dlqCommand,
  },
  {
    name: 'debug',
    group: fleet,
    summary: 'Collect information for troubleshooting',
    load: async () => (await import('./debug/bundle.ts')).debugCommand,
  },
  {
    name: 'ca',
    group: fleet,
    summary: "Show and replace the fleet's own certificate authority",
    load: async () => (await import('./fleet/ca.ts')).caCommand,
  },
  {
    name: 'verify',
    group: fleet,
    summary: 'Check the consistency of the fleet',
    load: async () => (await import('./fleet/verify.ts')).verifyCommand,
  },
  {
    name: 'audit',
    group: fleet,
    summary: 'Show who did what: audit log',
    load: async () => (await import('./access/audit.ts')).auditCommand,
  },
  {
    name: 'ledger',
    group: fleet,
    summary: 'Show who holds which resources, including other systems',
    load: async () => (await import('./fleet/ledger.ts')).ledgerCommand,
  },
  {
    name: 'host',
    group: fleet,
    summary: 'Hosts: show, pause, resume, remove',
    load: async () => (await import('./fleet/host.ts')).hostCommand,
  },
  {
    name: 'driver',
    group: fleet,
    summary: 'Drivers: show them, and the hosts that have them',
    load: async () => (await import('./fleet/driver.ts')).driverCommand,
  },
  {
    name: 'image',
    group: fleet,
    summary: 'Images: show, add, fetch, build, remove',
    load: async () => (await import('./fleet/images/image.ts')).imageCommand,
  },
  {
    name: 'size',
    group: fleet,
    summary: 'Sizes: named amounts of resources',
    load: async () => (await import('./fleet/size.ts')).sizeCommand,
  },
  {
    name: 'pool',
    group: fleet,
    summary: 'Pools: named groups of hosts',
    load: async () => (await import('./fleet/pool.ts')).poolCommand,
  },
  {
    name: 'inventory',
    group: fleet,
    summary: 'Inventories: hosts of other systems',
    load: async () => (await import('./inventory/inventory.ts')).inventoryCommand,
  },
  {
    name: 'group',
    group: fleet,
    summary: 'Placement groups: rules for placing instances together or apart',
    load: async () => (await import('./fleet/group.ts')).groupCommand,
  },
  {
    name: 'secret',
    group: fleet,
    summary: 'Secrets: named values for instances and jobs',
    load: async () => (await import('./access/secret.ts')).secretCommand,
  },
  {
    name: 'webhook',
    group: fleet,
    summary: 'Webhooks: where events of a project are sent',
    load: async () => (await import('./access/webhook.ts')).webhookCommand,
  },
  {
    name: 'project',
    group: fleet,
    summary: 'Projects: tenants, their weights and their limits',
    load: async () => (await import('./fleet/project.ts')).projectCommand,
  },
  {
    name: 'queue',
    group: fleet,
    summary: 'Show what waits for a host, and why',
    load: async () => (await import('./fleet/queue.ts')).queueCommand,
  },
  {
    name: 'rebalance',
    group: fleet,
    summary: 'Show how fewer hosts could be used, or do it, on request or at times',
    load: async () => (await import('./fleet/rebalance.ts')).rebalanceCommand,
  },
  {
    name: 'capacity',
    group: fleet,
    summary: 'Show how many more instances fit',
    load: async () => (await import('./fleet/capacity.ts')).capacityCommand,
  },
  {
    name: 'top',
    group: fleet,
    summary: 'Show the hosts, instances or projects that claim or use the most',
    load: async () => (await import('./fleet/top.ts')).topCommand,
  },
  {
    name: 'workload',
    group: daily,
    summary: 'Workloads: identical instances, kept running and updated',
    load: async () => (await import('./workloads/workload.ts')).workloadCommand,
  },
  {
    name: 'warm-pool',
    group: daily,
    summary: 'Warm pools: guests booted ahead, ready to be claimed',
    load: async () => (await import('./workloads/warm-pool.ts')).warmPoolCommand,
  },
  {
    name: 'spare',
    group: fleet,
    summary: 'Spares: machines prepared ahead and held until they are needed',
    load: async () => (await import('./fleet/spare.ts')).spareCommand,
  },
  {
    name: 'task',
    group: fleet,
    summary: 'Tasks: resources reserved for a limited time',
    load: async () => (await import('./fleet/task.ts')).taskCommand,
  },
  {
    name: 'volume',
    group: fleet,
    summary: 'Volumes: disks that outlive instances',
    load: async () => (await import('./fleet/volume.ts')).volumeCommand,
  },
  {
    name: 'token',
    group: access,
    summary: 'Tokens: credentials for people and programs',
    load: async () => (await import('./access/token.ts')).tokenCommand,
  },
  {
    name: 'role',
    group: access,
    summary: 'Roles: named sets of permissions',
    load: async () => (await import('./access/role.ts')).roleCommand,
  },
  {
    name: 'binding',
    group: access,
    summary: 'Bindings: who has which role, and where',
    load: async () => (await import('./access/binding.ts')).bindingCommand,
  },
  {
    name: 'share',
    group: access,
    summary: 'Let somebody else into one instance for a while',
    load: async () => (await import('./access/share.ts')).shareCommand,
  },
  {
    name: 'dashboard',
    group: access,
    summary: 'Print a link that opens the dashboard in a browser',
    load: async () => (await import('./access/dashboard.ts')).dashboardCommand,
  },
  {
    name: 'whoami',
    group: access,
    summary: 'Show your identity and your roles',
    load: async () => (await import('./access/whoami.ts')).whoAmICommand,
  },
  {
    name: 'can-i',
    group: access,
    summary: 'Ask whether you may do something',
    load: async () => (await import('./access/whoami.ts')).canICommand,
  },
  {
    name: 'login',
    group: local,
    summary: 'Log in to a server with an account of your organization, or as a CI job',
    load: async () => (await import('./access/login/login.ts')).loginCommand,
  },
  {
    name: 'logout',
    group: local,
    summary: 'Revoke the token of a login',
    load: async () => (await import('./access/login/logout.ts')).logoutCommand,
  },
  {
    name: 'context',
    group: local,
    summary: 'Contexts: the servers you use',
    load: async () => (await import('./context.ts')).contextCommand,
  },
  {
    name: 'completion',
    group: local,
    summary: 'Print a completion script for your shell',
    load: async () => (await import('./completion.ts')).completionCommand,
  },
  {
    name: 'version',
    group: local,
    summary: 'Show the versions of this program and of the server',
    load: async () => (await import('./version.ts')).versionCommand,
  },
];
