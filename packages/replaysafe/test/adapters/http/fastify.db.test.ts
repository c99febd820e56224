import { describe } from 'vitest';
import { httpConformance } from './conformance.js';
import { startFastify } from './start-fastify.js';

describe('Fastify', () => {
  httpConformance(startFastify);
});
