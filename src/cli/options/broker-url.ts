// The URL of a broker as an option. Every user of the machine can read a program's arguments.

import { usageError } from '../exit-codes.ts';

/** Throws `CommandError` when the URL of `--amqp-url` has a password. */
export function assertNoPassword(url: string): void {
  if (!URL.canParse(url) || !/^amqps?:$/.test(new URL(url).protocol))
    throw usageError('--amqp-url must be a URL of the form amqp://HOST:PORT/VHOST');
  if (new URL(url).password !== '')
    throw usageError(
      '--amqp-url has a password, which every user of this machine can read there',
      'set the variable AMQP_URL, or amqpUrl in the configuration file, and change that password',
    );
}
