import { describe } from 'vitest';
import { httpDatabaseConformance } from './conformance-database.js';
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
  describe('the database goes away', () => {
    httpDatabaseConformance(startFastify);
  });
  describe('records', () => {
    httpRecordConformance(startFastify);
  });
});
