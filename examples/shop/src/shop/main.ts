import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { type Infrastructure, sessionFor, startInfrastructure } from './infrastructure.js';
import { parseShopOptions, USAGE } from './options.js';
import { aborted, runProgram, START_FAILED } from './program.js';
import { type Shop, startShop } from './shop.js';

/** Everything but the one line of `--json` goes to stderr then. */
function announce(shop: Shop, infrastructure: Infrastructure): string {
  const [orders] = shop.orders;
  const address = orders?.address ?? '';
  return `
The shop is open. Ctrl-C closes it.

${shop.instances.map((instance) => `  ${instance.name.padEnd(12)}${instance.address}   pid ${String(instance.pid)}`).join('\n')}
  PostgreSQL  ${infrastructure.databaseUrl}   (databases orders, billing, provider)
  Kafka       ${infrastructure.kafkaBrokers}   (topic ${shop.topic})
  logs        ${shop.logFolder}

Place an order, ask for it, and see what the provider has charged for it:

  curl -i ${address}/orders -H 'content-type: application/json' -H 'Idempotency-Key: try-1' -d '{"customerId":"c-1","amountMinor":1990,"currency":"EUR"}'
  curl ${address}/orders/<orderId>
  curl '${shop.provider.address}/charges?orderId=<orderId>'

Send the first line again: the same answer, marked Idempotent-Replayed, and still one charge.
`;
}

function jsonLine(shop: Shop, infrastructure: Infrastructure): string {
  return JSON.stringify({
    orders: shop.orders.map((instance) => instance.address),
    billing: shop.billing.map((instance) => instance.address),
    provider: shop.provider.address,
    databaseUrl: infrastructure.databaseUrl,
    kafkaBrokers: infrastructure.kafkaBrokers,
    pids: Object.fromEntries(shop.instances.map((instance) => [instance.address, instance.pid])),
  });
}

/** What may be said to the whole shop. A service reads what it knows of it. */
function handedOn(): Record<string, string> {
  const names = ['SHOP_FAULTS', 'SHOP_UNSAFE', 'RELAY_MODE', 'RELAY_LEASE_MS', 'LAME_DUCK_MS', 'LOG_LEVEL'];
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? '']));
}

runProgram(async (ending) => {
  let options: ReturnType<typeof parseShopOptions>;
  try {
    options = parseShopOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return START_FAILED;
  }
  if (options === 'help') {
    console.log(USAGE);
    return 0;
  }
  const say = (line: string): void => {
    console.error(line);
  };

  say('starting PostgreSQL and Kafka');
  const infrastructure = await startInfrastructure(say, ending);
  if (infrastructure === undefined) return 0;
  let shop: Shop | undefined;
  try {
    say('starting the services');
    shop = await startShop({
      ...infrastructure,
      ...sessionFor(infrastructure),
      orders: options.orders,
      billing: options.billing,
      // A database of this run and a broker that others use too: their topic is not ours to read.
      suffix: infrastructure.ownDatabase && !infrastructure.ownKafka ? `_${randomBytes(4).toString('hex')}` : '',
      env: { all: handedOn() },
      signal: ending,
    });
    process.stdout.write((options.json ? jsonLine : announce)(shop, infrastructure) + '\n');
    await aborted(ending);
    say('closing the shop');
    await shop.stop();
    await rm(shop.logFolder, { recursive: true, force: true });
    return 0;
  } catch (error) {
    if (ending.aborted) return 0;
    throw error;
  } finally {
    await shop?.stop();
    await infrastructure.stop();
  }
});
