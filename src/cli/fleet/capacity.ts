// `berth capacity`: how many more instances fit, what strands the rest, and whether the fleet survives the loss of
// hosts.

import { Command } from 'commander';
import type { Capacity, LossCapacity, PoolUse, SizeCapacity } from '../../api/capacity.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { type Column, type Colours, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { type PlaceOptions, placeOf, withPlaceOptions, withRoomOptions } from '../options/place-options.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';
import { amountText, memory, parseInteger } from '../options/units.ts';

interface CapacityFlags extends PlaceOptions {
  readonly image?: string;
  readonly losses: string;
  readonly output: Format;
}

export function capacityCommand(cli: Cli): Command {
  const command = new Command('capacity')
    .description('Show how many more instances fit, of each size or of the given resources')
    .option('--image <image>', 'only where this image can run; its default resources apply');
  return withPlaceOptions(withRoomOptions(command))
    .option(
      '--losses <count>',
      'check that all instances would still fit after the loss of this many hosts: 1 or 2',
      '0',
    )
    .addOption(outputOption('value'))
    .action(async (options: CapacityFlags, called: Command) => {
      const losses = parseInteger('--losses', options.losses, { min: 0, max: 2 });
      const spec = { ...placeOf(options), ...(options.image === undefined ? {} : { image: options.image }) };
      const { placement, ...room } = spec;
      const asked = Object.keys(room).length + Object.keys(placement).length > 0;
      const { client, project } = await openSession(cli, called);
      const capacity = await attempting('compute the capacity', () =>
        client.capacity({ project, losses, ...(asked ? { spec } : {}) }),
      );
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, capacity);
      cli.stdout.write(`${capacityLines(capacity, coloursFor(cli.stdout, cli.environment)).join('\n')}\n`);
    });
}

export function capacityLines({ hosts, pools, sizes, losses }: Capacity, colours: Colours): string[] {
  if (hosts === 0) return ['There is no host yet; start an agent on one: berth agent --help'];
  return [
    ...tableLines(poolColumns, pools, { colours }),
    '',
    ...(sizes.length === 0
      ? ['There are no sizes; name the resources: berth capacity --cpus 2 --memory 4GiB']
      : tableLines(sizeColumns, sizes.flatMap(rowsOf), { colours })),
    ...sizes.flatMap(strandedLines),
    ...losses.flatMap(lossLines),
  ];
}

const poolColumns: readonly Column<PoolUse>[] = [
  { header: 'POOL', value: ({ pool }) => pool },
  { header: 'HOSTS', value: ({ hosts }) => String(hosts), right: true },
  { header: 'OPEN', value: ({ open }) => String(open), right: true },
  { header: 'CPUS', value: (use) => usedOf(use, 'VCPU', String), right: true },
  { header: 'MEMORY', value: (use) => usedOf(use, 'MEMORY_MB', memory), right: true },
  { header: 'DISK', value: (use) => usedOf(use, 'DISK_GB', (gib) => `${gib} GiB`), right: true },
];

/** `12/64`. */
function usedOf({ classes }: PoolUse, resourceClass: string, show: (amount: number) => string): string {
  const use = classes[resourceClass];
  return use ? `${show(use.used)}/${show(use.capacity)}` : '';
}

interface SizeRow {
  readonly size: string;
  readonly amounts: SizeCapacity['amounts'];
  readonly pool: string;
  readonly more: string;
}

const sizeColumns: readonly Column<SizeRow>[] = [
  { header: 'SIZE', value: ({ size }) => size },
  { header: 'REQUESTS', value: ({ amounts }) => amountsText(amounts) },
  { header: 'POOL', value: ({ pool }) => pool },
  { header: 'MORE', value: ({ more }) => more, right: true },
];

function rowsOf({ size = 'asked', amounts, more, atLeast, pools }: SizeCapacity): SizeRow[] {
  const some = pools.filter((each) => each.more > 0);
  if (some.length < 2) return [{ size, amounts, pool: some[0]?.pool ?? '', more: `${more}${atLeast ? '+' : ''}` }];
  return [
    { size, amounts, pool: 'all', more: `${more}${atLeast ? '+' : ''}` },
    ...some.map(({ pool, more: here }) => ({ size, amounts, pool, more: String(here) })),
  ];
}

function strandedLines({ size = 'the request', stranded }: SizeCapacity): string[] {
  if (stranded.length === 0) return [];
  const lines = stranded.map(({ reason, hosts, free, examples }) => {
    const [example] = examples;
    const as = example ? `, as ${example.host}: ${example.message}` : '';
    return `  ${amountsText(free)} on ${hosts} host${hosts === 1 ? '' : 's'}: ${reason}${as}`;
  });
  return ['', `Free, but not usable for ${visible(size)}:`, ...lines.map((line) => visible(line))];
}

function lossLines({ losses, checked, of, survived, worst }: LossCapacity): string[] {
  const what = losses === 1 ? 'any one host' : `any ${losses} hosts at once`;
  const tried = checked === of ? `${of}` : `the ${checked} worst of ${of}`;
  const cases = `case${of === 1 ? '' : 's'}`;
  if (survived === checked)
    return ['', `Everything would survive the loss of ${what}${checked === of ? '' : ` (${tried} ${cases} tried)`}.`];
  return [
    '',
    `The loss of ${what}: in ${checked - survived} of ${tried} ${cases} some instances would not fit:`,
    ...worst.map(({ hosts, instances, unplaced, examples }) => {
      const who = examples.map(({ instance }) => instance).join(', ');
      const why = examples[0] ? ` (${examples[0].message})` : '';
      return visible(
        `  ${hosts.join(' and ')}: ${unplaced} of ${instances}: ${who}${unplaced > examples.length ? ', …' : ''}${why}`,
      );
    }),
  ];
}

function amountsText(amounts: SizeCapacity['amounts']): string {
  return Object.entries(amounts)
    .filter(([, amount]) => amount > 0)
    .map(([resourceClass, amount]) => amountText(resourceClass, amount))
    .join(', ');
}
