import { describe } from 'vitest';
import { httpFaultConformance } from './conformance-faults.js';
import { httpRecordConformance } from './conformance-records.js';
import { httpConformance } from './conformance.js';
import { startFastify } from './start-fastify.js';

describe('Fastify', () => {
  describe('keys and answers', () => {
    httpConformance(startFastify);
  });
  describe('races and faults', () => {
    httpFaultConformance(startFastify);
  });
  describe('records', () => {
    httpRecordConformance(startFastify);
  });
});
