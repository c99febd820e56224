export { killAt, parseKillPoint, type KillOptions, type KillPoint, type KillSignal } from './kill-at.js';
export { killByList, readKillList, writeKillList } from './kill-list.js';
export { reconcile, type Book, type Finding, type LedgerEntry, type Reconciliation } from './ledger.js';
