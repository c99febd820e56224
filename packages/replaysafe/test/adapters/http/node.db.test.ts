import { describe } from 'vitest';
import { httpFaultConformance } from './conformance-faults.js';
import { httpRecordConformance } from './conformance-records.js';
import { httpConformance } from './conformance.js';
import { startNode } from './start-node.js';

describe('node:http', () => {
  describe('keys and answers', () => {
    httpConformance(startNode);
  });
  describe('races and faults', () => {
    httpFaultConformance(startNode);
  });
  describe('records', () => {
    httpRecordConformance(startNode);
  });
});
