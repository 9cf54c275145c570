// The network of the crucible: one bridge in the runner's own network namespace and one namespace for each machine. Cuts are silent, as
// a broken cable is: the receiver's nftables drop what arrives. Nothing of the machine's own network is in here.

import { command } from './daemon.ts';

export interface Network {
  /** Of a machine, or of the runner. */
  addressOf(machine: string): string;
  /** What `from` sends to `to` is lost from now on; what `to` sends arrives. The function it returns mends that. */
  cutOneWay(from: string, to: string): Promise<() => Promise<void>>;
  cut(one: string, other: string): Promise<() => Promise<void>>;
  /** Every machine's cable is pulled out, or plugged in. */
  setBridge(up: boolean): Promise<void>;
}

/** Of each machine: from whom nothing arrives. */
const rules = `
table inet cut {
  set senders { type ipv4_addr; }
  chain arriving {
    type filter hook input priority filter; policy accept;
    ip saddr @senders drop
  }
}`;
export const runnerName = 'runner';

/** The process must be in network, mount and process namespaces of its own. */
export async function createNetwork(machines: readonly string[]): Promise<Network> {
  const addresses = new Map([runnerName, ...machines].map((name, i) => [name, `10.77.0.${i + 1}`]));
  const addressOf = (machine: string): string => {
    const address = addresses.get(machine);
    if (address === undefined) throw new Error(`there is no machine "${machine}"`);
    return address;
  };
  await command('ip', 'link', 'set', 'lo', 'up');
  await command('ip', 'link', 'add', 'br0', 'type', 'bridge');
  await command('ip', 'address', 'add', `${addressOf(runnerName)}/24`, 'dev', 'br0');
  await command('ip', 'link', 'set', 'br0', 'up');
  for (const machine of machines) {
    await command('ip', 'netns', 'add', machine);
    await command('ip', 'link', 'add', `to-${machine}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', machine);
    await command('ip', 'link', 'set', `to-${machine}`, 'master', 'br0', 'up');
    await command('ip', '-n', machine, 'address', 'add', `${addressOf(machine)}/24`, 'dev', 'eth0');
    await command('ip', '-n', machine, 'link', 'set', 'lo', 'up');
    await command('ip', '-n', machine, 'link', 'set', 'eth0', 'up');
    await command('ip', 'netns', 'exec', machine, 'nft', rules);
  }

  const cutOneWay = async (from: string, to: string): Promise<() => Promise<void>> => {
    const sender = async (verb: 'add' | 'delete'): Promise<void> => {
      const words = ['element', 'inet', 'cut', 'senders', `{ ${addressOf(from)} }`];
      await command('ip', 'netns', 'exec', to, 'nft', verb, ...words);
    };
    await sender('add');
    return () => sender('delete');
  };

  return {
    addressOf,
    cutOneWay,
    async cut(one, other) {
      const there = await cutOneWay(one, other);
      const back = await cutOneWay(other, one);
      return async () => {
        await there();
        await back();
      };
    },
    async setBridge(up) {
      for (const machine of machines) await command('ip', 'link', 'set', `to-${machine}`, up ? 'up' : 'down');
    },
  };
}
