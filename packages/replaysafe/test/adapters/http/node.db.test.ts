import { describe } from 'vitest';
import { httpConformance } from './conformance.js';
import { startNode } from './start-node.js';

describe('node:http', () => {
  httpConformance(startNode);
});
