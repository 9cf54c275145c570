// The whole contract once more where each guest has a user of its own. What is special to that is in own-user.real.test.ts.

import { describe } from 'vitest';
import { system } from '../../../base/system.ts';
import { driverConformance } from '../conformance.ts';
import { makeQemuTestHost } from './test-host.ts';

const users = { first: 1_900_100_000, count: 1000 };
const reason = system.userId() === 0 ? undefined : 'only root may run guests as somebody else';

describe.skipIf(reason !== undefined)(`QEMU as a user of its own${reason ? ` (${reason})` : ''}`, () => {
  driverConformance('the QEMU driver with a user for each guest', async () => {
    const tested = await makeQemuTestHost();
    return { ...tested, open: () => tested.open({ users }) };
  });
});
