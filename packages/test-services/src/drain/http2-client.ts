import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { type Scene } from './clients.js';

const KIND = 'HTTP/2 stream';

/** Streams over one session after the other: a session that is told to go (GOAWAY) finishes what it has and is replaced. */
export async function http2Client(scene: Scene, scheme: 'http' | 'https'): Promise<void> {
  while (scene.now() < scene.propagationMs) {
    const session = await open(`${scheme}://127.0.0.1:${scene.port}`);
    if (!session) {
      scene.tally.count(KIND, 'refused');
      return;
    }
    let told = false;
    session.once('goaway', () => (told = true));
    const slow = stream(scene, session, '/slow?ms=700');
    const mayAsk = (): boolean => !told && !session.closed && !session.destroyed && scene.now() < scene.propagationMs;
    while (mayAsk()) {
      await stream(scene, session, '/fast');
      await scene.until(scene.now() + scene.random(8));
    }
    await slow;
    session.close();
  }
}

async function open(url: string): Promise<ClientHttp2Session | undefined> {
  const session = connect(url, { rejectUnauthorized: false });
  return new Promise((resolve) => {
    session.once('connect', () => {
      session.on('error', () => undefined);
      resolve(session);
    });
    session.once('error', () => {
      resolve(undefined);
    });
  });
}

function stream(scene: Scene, session: ClientHttp2Session, path: string): Promise<void> {
  return new Promise((resolve) => {
    let status: number | undefined;
    const request = session.request({ ':path': path });
    request.once('response', (headers) => (status = headers[':status']));
    request.on('error', () => undefined);
    request.resume();
    request.once('close', () => {
      // REFUSED_STREAM promises that nothing of it was processed: the GOAWAY was there before the stream could go out.
      if (status === 200) scene.tally.count(KIND, 'answered');
      else scene.tally.count(KIND, request.rstCode === constants.NGHTTP2_REFUSED_STREAM ? 'refused' : 'lost');
      resolve();
    });
  });
}
