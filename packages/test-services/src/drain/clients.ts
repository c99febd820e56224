import { RawClient, type Ending } from './raw-client.js';
import { type Answer } from './answer-reader.js';
import { type Outcome, type Tally } from './tally.js';

/** What every client of a run is told. */
export interface Scene {
  readonly port: number;
  readonly oneWayMs: number;
  readonly tally: Tally;
  /** Waits until so many milliseconds after the signal; negative before it. */
  until(ms: number): Promise<void>;
  /** Milliseconds since the signal, negative before it. */
  now(): number;
  /** A random whole number below the bound. */
  random(bound: number): number;
  /** Until when, after the signal, clients of a balancer may still open and use connections. */
  readonly propagationMs: number;
}

export const DOWNLOAD_BYTES = 32 * 1_048_576;
const STREAM_BYTES = 10 * 16;

export const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const post = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n`;

const isAnswer = (result: Answer | Ending): result is Answer => typeof result !== 'string';

function outcomeOf(client: RawClient, result: Answer | Ending, fits: (answer: Answer) => boolean): Outcome {
  if (isAnswer(result)) {
    if (result.status === 503) return 'refused';
    return fits(result) ? 'answered' : 'lost';
  }
  if (client.crossedTheEnd) return 'crossed';
  return result === 'reset' ? 'reset' : 'lost';
}

const ok = (answer: Answer): boolean => answer.status === 200;
const withBody =
  (bytes: number) =>
  (answer: Answer): boolean =>
    answer.status === 200 && answer.bodyBytes === bytes;

async function ask(
  scene: Scene,
  kind: string,
  client: RawClient,
  request: string,
  fits = ok,
): Promise<Answer | Ending> {
  client.send(request);
  const result = await client.answer();
  scene.tally.count(kind, outcomeOf(client, result, fits));
  return result;
}

async function connect(scene: Scene, kind: string): Promise<RawClient | undefined> {
  const client = await RawClient.connect(scene.port, scene.oneWayMs);
  if (!client) scene.tally.count(kind, 'refused');
  return client;
}

/** Opens a connection and uses it once. Undefined where it may not be used again: it was told to close, or has ended. */
async function kept(scene: Scene, kind: string): Promise<RawClient | undefined> {
  const client = await connect(scene, kind);
  if (!client) return undefined;
  const result = await ask(scene, kind, client, get('/fast'));
  if (isAnswer(result) && !result.close) return client;
  client.close();
  return undefined;
}

/** Uses one connection after the other, each for as long as it may, until `goesOn` says no or nobody listens. */
async function closedLoop(scene: Scene, kind: string, goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    const client = await connect(scene, kind);
    if (!client) return;
    let result = await ask(scene, kind, client, get('/fast'));
    while (isAnswer(result) && !result.close && goesOn()) {
      await scene.until(scene.now() + scene.random(8));
      result = await ask(scene, kind, client, get('/fast'));
    }
    client.close();
  }
}

/** A pool of another service, or clients behind a layer-4 balancer: they come back for as long as anybody listens. */
export const sticky = (scene: Scene): Promise<void> => closedLoop(scene, 'keep-alive, never leaves', () => true);

/** Behind a layer-7 balancer: leaves when the endpoint is gone. */
export const balanced = (scene: Scene): Promise<void> =>
  closedLoop(scene, 'keep-alive, balanced', () => scene.now() < scene.propagationMs);

/** A connection of a pool that nobody has used for a while, and then somebody does. */
export async function idleThenUsed(scene: Scene): Promise<void> {
  const kind = 'idle, wakes up';
  const client = await kept(scene, kind);
  if (!client) return;
  await scene.until(scene.random(1_800));
  // A pool notices that a connection was closed, and takes another.
  if (client.ended === undefined) await ask(scene, kind, client, get('/fast'));
  client.close();
}

/** A browser's spare connection. */
export async function neverUsed(scene: Scene): Promise<void> {
  const client = await connect(scene, 'never used');
  if (!client) return;
  await client.answer();
  client.close();
}

const oneRequest =
  (kind: string, atMs: number, path: string, fits = ok) =>
  async (scene: Scene): Promise<void> => {
    await scene.until(atMs);
    const client = await connect(scene, kind);
    if (!client) return;
    await ask(scene, kind, client, get(path), fits);
    client.close();
  };

export const slowRequest = oneRequest('slow request', -100, '/slow?ms=800');
export const chunkedStream = oneRequest('chunked stream', -200, '/stream', withBody(STREAM_BYTES));

/** Begins to read when the server has long handed everything over. */
export async function slowDownload(scene: Scene): Promise<void> {
  const kind = 'slow download';
  await scene.until(-150);
  const client = await connect(scene, kind);
  if (!client) return;
  client.send(get('/download'));
  await client.answerBegins();
  client.pause();
  await scene.until(700);
  client.resume();
  scene.tally.count(kind, outcomeOf(client, await client.answer(), withBody(DOWNLOAD_BYTES)));
  client.close();
}

const inTwoHalves =
  (kind: string, first: string, second: string) =>
  async (scene: Scene): Promise<void> => {
    await scene.until(-200);
    const client = await connect(scene, kind);
    if (!client) return;
    client.send(first);
    await scene.until(400);
    await ask(scene, kind, client, second);
    client.close();
  };

export const halfHead = inTwoHalves('half a head', 'GET /fast HTTP/1.1\r\nHost: lo', 'calhost\r\n\r\n');
export const halfBody = inTwoHalves('half a body', post('/upload', 100) + 'x'.repeat(50), 'x'.repeat(50));

const pipelinedAt =
  (atMs: number) =>
  async (scene: Scene): Promise<void> => {
    const kind = 'pipelined';
    await scene.until(-250);
    const client = await kept(scene, kind);
    if (!client) return;
    await scene.until(atMs);
    client.send(get('/slow?ms=100') + get('/fast') + get('/fast'));
    for (let n = 0; n < 3; n++) scene.tally.count(kind, outcomeOf(client, await client.answer(), ok));
    client.close();
  };

export const pipelinedBefore = pipelinedAt(-30);
export const pipelinedAfter = pipelinedAt(60);

/** Begins after the signal, and takes its time. */
export async function lateUpload(scene: Scene): Promise<void> {
  const kind = 'late upload';
  const piece = Buffer.alloc(131_072, 'x');
  const client = await kept(scene, kind);
  if (!client) return;
  await scene.until(100);
  client.send(post('/upload', 4 * piece.length));
  for (let n = 0; n < 4; n++) {
    client.send(piece);
    await scene.until(scene.now() + 100);
  }
  scene.tally.count(kind, outcomeOf(client, await client.answer(), ok));
  client.close();
}

/** A new connection every 20 ms, each for one request, for as long as the endpoint is known. */
export async function newcomers(scene: Scene): Promise<void> {
  const asked: Promise<void>[] = [];
  for (let atMs = -100; atMs < scene.propagationMs; atMs += 20)
    asked.push(oneRequest('newcomer', atMs, '/fast')(scene));
  await Promise.all(asked);
}

/** Is told to go: the stream ends as a stream ends, not as a connection breaks. */
export const eventStream = oneRequest('event stream', -200, '/sse');

const CLOSE_1001 = Buffer.from([0x88, 0x02, 0x03, 0xe9]);
const MASKED_CLOSE_1001 = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]);
const HANDSHAKE =
  'GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';

/** Is told to go by a close frame, and answers it. */
export async function webSocket(scene: Scene): Promise<void> {
  const kind = 'WebSocket';
  await scene.until(-200);
  const client = await connect(scene, kind);
  if (!client) return;
  client.send(HANDSHAKE);
  const upgraded = await client.answer();
  const told =
    isAnswer(upgraded) && upgraded.status === 101 && (await client.sees((bytes) => bytes.includes(CLOSE_1001)));
  client.send(MASKED_CLOSE_1001);
  scene.tally.count(kind, told ? 'answered' : 'lost');
  await client.sees(() => false);
  client.close();
}
