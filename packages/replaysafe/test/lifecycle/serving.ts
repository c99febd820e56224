import { once } from 'node:events';
import { type Server } from 'node:net';
import { type AddressInfo } from 'node:net';
import { createLifecycle, type HttpServer, type Lifecycle, type LifecycleOptions } from '../../src/lifecycle/index.js';

/** A lifecycle with a quick drain; generous ends, since they cost nothing where the line falls quiet. */
export function quickLifecycle(given: LifecycleOptions = {}): Lifecycle {
  return createLifecycle({ lameDuckMs: 0, httpDrainMs: 10_000, quietMs: 100, lingerMs: 50, ...given });
}

/** Registers, says `started()` and listens. */
export async function serveOn(lifecycle: Lifecycle, server: HttpServer, management = false): Promise<number> {
  lifecycle.server(server, management ? { name: 'management', management } : {});
  lifecycle.started();
  (server as Server).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Something that a test waits for and another part of it lets happen. */
export function latch(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    opened,
    open: () => {
      open();
    },
  };
}
