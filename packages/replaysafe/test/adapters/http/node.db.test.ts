import { describe } from 'vitest';
import { httpDatabaseConformance } from './conformance-database.js';
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
  describe('the database goes away', () => {
    httpDatabaseConformance(startNode);
  });
  describe('records', () => {
    httpRecordConformance(startNode);
  });
});
