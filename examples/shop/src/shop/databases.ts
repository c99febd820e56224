import pg from 'pg';
import type { ServiceName } from './instance.js';

export type DatabaseUrls = Readonly<Record<ServiceName, string>>;

const SERVICES: readonly ServiceName[] = ['orders', 'billing', 'provider'];

/** Makes the database of each service where it is missing. `suffix` keeps runs apart that share a server. */
export async function openDatabases(serverUrl: string, suffix = ''): Promise<DatabaseUrls> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    for (const service of SERVICES) {
      await client.query(`create database ${pg.escapeIdentifier(service + suffix)}`).catch((error: unknown) => {
        // There already, or made by another shop at this moment.
        if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error;
      });
    }
  } finally {
    await client.end();
  }
  const [orders, billing, provider] = SERVICES.map((service) => databaseUrl(serverUrl, service + suffix));
  return { orders: orders ?? '', billing: billing ?? '', provider: provider ?? '' };
}

/** Drops what {@link openDatabases} has made. */
export async function dropDatabases(serverUrl: string, suffix: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    for (const service of SERVICES) {
      await client.query(`drop database if exists ${pg.escapeIdentifier(service + suffix)} with (force)`);
    }
  } finally {
    await client.end();
  }
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}
