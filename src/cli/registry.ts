// The commands. A new one is a file and a line here; a line's file is loaded only when the command is called, or its help is asked for.

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
const local = 'This program:';

export const commandEntries: readonly CommandEntry[] = [
  {
    name: 'run',
    group: daily,
    summary: 'Make an instance from an image',
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
    summary: 'Show an instance: how it is, where, and what it was given',
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
    summary: "Sit at an instance's serial console",
    load: async () => (await import('./ways-in/console.ts')).consoleCommand,
  },
  {
    name: 'port-forward',
    group: daily,
    summary: "Bring an instance's ports to this machine",
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
    summary: "Bring an instance's screen to this machine, for a VNC viewer",
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
    summary: 'Say why an instance is where it is, host by host',
    load: async () => (await import('./instances/explain.ts')).explainCommand,
  },
  {
    name: 'plan',
    group: daily,
    summary: 'Say what a command would do, and do nothing',
    load: async () => (await import('./instances/plan.ts')).planCommand,
  },
  {
    name: 'candidates',
    group: daily,
    summary: 'Show the hosts that would take something',
    load: async () => (await import('./fleet/candidates.ts')).candidatesCommand,
  },
  {
    name: 'reserve',
    group: daily,
    summary: 'Hold room for a while without an instance',
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
    summary: 'Start instances that are stopped or ended, on their own disks',
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
    summary: 'Hold running instances still, keeping their memory',
    load: async () => (await import('./instances/power.ts')).suspendCommand,
  },
  {
    name: 'resume',
    group: daily,
    summary: 'Let suspended instances go on where they were',
    load: async () => (await import('./instances/power.ts')).resumeCommand,
  },
  {
    name: 'rm',
    group: daily,
    summary: 'Remove instances',
    load: async () => (await import('./instances/rm.ts')).rmCommand,
  },
  {
    name: 'events',
    group: daily,
    summary: 'Show what happened',
    load: async () => (await import('./instances/events.ts')).eventsCommand,
  },
  {
    name: 'get',
    group: daily,
    summary: 'Show one resource, or all of a kind',
    load: async () => (await import('./get.ts')).getCommand,
  },
  {
    name: 'audit',
    group: fleet,
    summary: 'Prove the fleet consistent, or say what is not',
    load: async () => (await import('./fleet/audit.ts')).auditCommand,
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
    summary: 'Drivers: what guests are made of, and where',
    load: async () => (await import('./fleet/driver.ts')).driverCommand,
  },
  {
    name: 'image',
    group: fleet,
    summary: 'Images: show, add, fetch, build, remove',
    load: async () => (await import('./fleet/image.ts')).imageCommand,
  },
  {
    name: 'size',
    group: fleet,
    summary: 'Sizes: named amounts of room',
    load: async () => (await import('./fleet/size.ts')).sizeCommand,
  },
  {
    name: 'pool',
    group: fleet,
    summary: 'Pools: named parts of the fleet',
    load: async () => (await import('./fleet/pool.ts')).poolCommand,
  },
  {
    name: 'group',
    group: fleet,
    summary: 'Placement groups: rules of instances about each other',
    load: async () => (await import('./fleet/group.ts')).groupCommand,
  },
  {
    name: 'project',
    group: fleet,
    summary: 'Projects: tenants, and what each may have',
    load: async () => (await import('./fleet/project.ts')).projectCommand,
  },
  {
    name: 'queue',
    group: fleet,
    summary: 'Show what waits for a host, and why',
    load: async () => (await import('./fleet/queue.ts')).queueCommand,
  },
  {
    name: 'capacity',
    group: fleet,
    summary: 'Say how many more fit',
    load: async () => (await import('./fleet/capacity.ts')).capacityCommand,
  },
  {
    name: 'task',
    group: fleet,
    summary: 'Tasks: room that is held for a while',
    load: async () => (await import('./fleet/task.ts')).taskCommand,
  },
  {
    name: 'volume',
    group: fleet,
    summary: 'Volumes: disks that stay when instances go',
    load: async () => (await import('./fleet/volume.ts')).volumeCommand,
  },
  {
    name: 'context',
    group: local,
    summary: 'Servers you work with',
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
