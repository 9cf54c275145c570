// The commands that run a part of Berth itself. A new one is a file and a line here; its file is loaded only when it is
// run.

import type { CommandEntry } from '../cli/registry.ts';

const group = 'Processes:';
const store = 'Store:';

export const processCommands: readonly CommandEntry[] = [
  {
    name: 'server',
    group,
    summary: 'Run the control plane',
    load: async () => (await import('./server.ts')).serverCommand,
  },
  {
    name: 'server ls',
    group,
    summary: 'Show the servers of the fleet, and their versions',
    load: async () => (await import('./server-list.ts')).serverListCommand,
  },
  {
    name: 'server keys',
    group,
    summary: 'Show which master keys the store needs',
    load: async () => (await import('./master-keys.ts')).serverKeysCommand,
  },
  {
    name: 'server rotate-key',
    group,
    summary: 'Put a new master key first in the key file of a server',
    load: async () => (await import('./master-keys.ts')).rotateKeyCommand,
  },
  {
    name: 'agent',
    group,
    summary: 'Run the agent of a host',
    load: async () => (await import('./agent.ts')).agentCommand,
  },
  {
    name: 'config',
    group,
    summary: 'Check and show the configuration of servers and agents',
    load: async () => (await import('./config/config.ts')).configCommand,
  },
  {
    name: 'mcp',
    group,
    summary: 'Speak the Model Context Protocol on standard input and output',
    load: async () => (await import('./mcp.ts')).mcpCommand,
  },
  {
    name: 'backup',
    group: store,
    summary: 'Back up all data of the control plane',
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  {
    name: 'restore',
    group: store,
    summary: 'Restore a store from a backup',
    load: async () => (await import('./restore.ts')).restoreCommand,
  },
  {
    name: 'store',
    group: store,
    summary: 'Check a store, or move it to another',
    load: async () => (await import('./store.ts')).storeCommand,
  },
  {
    name: 'upgrade',
    group: store,
    summary: 'Check whether a fleet can be upgraded to this version',
    load: async () => (await import('./upgrade/upgrade.ts')).upgradeCommand,
  },
  {
    name: 'dev',
    group,
    summary: 'Run control plane and agent in one process, for trying Berth out',
    load: async () => (await import('./dev.ts')).devCommand,
  },
  {
    name: 'quickstart',
    group,
    summary: 'Start a control plane, an agent and a first guest, step by step',
    load: async () => (await import('./quickstart/quickstart.ts')).quickstartCommand,
  },
  {
    name: 'sim',
    group,
    summary: 'Run the simulator: real components in a simulated world',
    load: async () => (await import('./sim.ts')).simCommand,
  },
  {
    name: 'sim replay',
    group,
    summary: 'Run a recorded trace through the scheduler',
    load: async () => (await import('./sim-replay.ts')).simReplayCommand,
  },
  {
    name: 'image build',
    group,
    summary: 'Build an image on this machine and add it',
    load: async () => (await import('./image-build.ts')).imageBuildCommand,
  },
  {
    name: 'token rotate-admin',
    group,
    summary: 'Replace the admin token of the servers on this machine',
    load: async () => (await import('./rotate-admin.ts')).rotateAdminCommand,
  },
  {
    name: 'host token',
    group,
    summary: "Print the token for a host's agent",
    load: async () => (await import('./host-token.ts')).hostTokenCommand,
  },
];
