/** What is often written: `server.close()`, and the process ends when that is through. It is here to show that the test can see a loss. */
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { plain, withWebSockets } from './serving.js';

const server = createServer(plain);
withWebSockets(server);
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  setTimeout(() => process.exit(0), 3_000);
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
