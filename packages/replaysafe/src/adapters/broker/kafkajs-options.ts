import { randomBytes } from 'node:crypto';
import { ReplaysafeError } from '../../errors.js';
import { custom, type OptionReader } from '../../options.js';
import type { KafkajsClient, KafkajsSource } from './kafkajs-types.js';

const METHODS = ['producer', 'consumer', 'admin'] as const;

/** Reads the option `kafka`: an instance of `Kafka`, or a function that makes one. */
export const kafkaSource = custom<KafkajsSource>((given) => {
  if (typeof given === 'function') return undefined;
  const candidate = given as Record<string, unknown> | null;
  const complete = candidate !== null && METHODS.every((method) => typeof candidate[method] === 'function');
  return complete ? undefined : 'must be a Kafka instance of kafkajs, or a function (clientId) => Kafka';
});

/** An option that exists only to be refused: any value but the safe one is told at once, before a message is lost by it. */
export function onlySafe(name: string, safe: readonly unknown[], why: string): OptionReader<undefined> {
  return {
    read: (given) => {
      if (given === undefined || safe.includes(given)) return undefined;
      throw new ReplaysafeError('RS_BROKER_UNSAFE_SETTING', { detail: `${name}: ${why}` });
    },
  };
}

const CLIENT_ID = /^replaysafe:(.*):[^:]*$/;

/** `replaysafe:<name>:<instance>`, the instance made up anew. */
export const clientIdOf = (name: string): string => `replaysafe:${name}:${randomBytes(4).toString('hex')}`;

/** The name in a client id of ours, or undefined for a foreign one. */
export const nameInClientId = (clientId: string): string | undefined => CLIENT_ID.exec(clientId)?.[1];

/** @throws whatever the application's factory throws */
export function openKafka(source: KafkajsSource, clientId: string): KafkajsClient {
  return typeof source === 'function' ? source(clientId) : source;
}
