import { driverConformance } from '../conformance.ts';
import { makeQemuTestHost } from './test-host.ts';

driverConformance('the QEMU driver', makeQemuTestHost);
