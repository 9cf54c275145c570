// How what an agent says to QEMU, to libvirt and to a container engine is told from mere questions. Used by tests only.

import type { EngineTalk } from '../test-life.ts';

/** QEMU's control protocol: one JSON object a line. */
export const qmpTalk: EngineTalk = {
  changeAskedBy(said) {
    const command = /^\{"execute":"([a-z_-]+)"/.exec(said.toString('latin1', 0, 100))?.[1];
    if (command === undefined || command === 'qmp_capabilities' || command.startsWith('query-')) return undefined;
    return command === 'human-monitor-command' && said.includes('"info ') ? undefined : command;
  },
  isAnswer: (said) => said.includes('{"return"') || said.includes('{"error"'),
};

/** Of libvirt's remote_protocol.x, what changes a domain or a network. */
const libvirtChanges: Readonly<Record<number, string>> = {
  9: 'domainCreate',
  11: 'domainDefine',
  12: 'domainDestroy',
  28: 'domainResume',
  34: 'domainSuspend',
  39: 'networkCreate',
  160: 'domainAttachDevice',
  161: 'domainDetachDevice',
  231: 'domainUndefine',
  251: 'domainBlockResize',
  258: 'domainShutdown',
};
const [remoteProgram, qemuProgram] = [0x2000_8086, 0x2000_8087];
const headerBytes = 28;
const reply = 1;

/** Seven words of 32 bits, then the body: length, program, version, procedure, type, serial, status. */
export const libvirtTalk: EngineTalk = {
  changeAskedBy(said) {
    if (said.length < headerBytes || said.readUInt32BE(0) !== said.length) return undefined;
    if (said.readUInt32BE(4) === remoteProgram) return libvirtChanges[said.readUInt32BE(12)];
    if (said.readUInt32BE(4) !== qemuProgram) return undefined;
    return /hostfwd_(add|remove)|blockdev-snapshot-[a-z-]+/.exec(said.toString('latin1', headerBytes))?.[0];
  },
  isAnswer(said) {
    for (let at = 0; at + headerBytes <= said.length; at += said.readUInt32BE(at)) {
      if (![remoteProgram, qemuProgram].includes(said.readUInt32BE(at + 4))) return false;
      if (said.readUInt32BE(at + 16) === reply) return true;
    }
    return false;
  },
};

/** HTTP: whatever is not only read. */
export const containerTalk: EngineTalk = {
  changeAskedBy(said) {
    const line = /^(POST|PUT|DELETE) (\S+) HTTP\//.exec(said.toString('latin1', 0, 2000));
    return line === null ? undefined : `${line[1]} ${(line[2] ?? '').replace(/\?.*/, '')}`;
  },
  isAnswer: (said) => said.toString('latin1', 0, 5) === 'HTTP/',
};
