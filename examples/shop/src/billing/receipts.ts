import { operationKey } from 'replaysafe/client';
import { taskKind, type NewTask, type RequestInput, type RequestResult } from 'replaysafe/tasks';
import type { ConfirmedOrder } from './charging.js';

/** What billing has to do that must not run inside a transaction, and must be done even if this process does not live to do it. */
export const billingTasks = {
  'send-receipt': taskKind<RequestInput, RequestResult>(),
};

/** The receipt of an order, to be enqueued in the transaction that records its charge: there is one exactly if there is the other. */
export function receiptOf(order: ConfirmedOrder): NewTask<'send-receipt', RequestInput> {
  const { orderId, amountMinor, currency } = order;
  return {
    kind: 'send-receipt',
    key: operationKey('receipt', orderId),
    input: {
      method: 'POST',
      path: '/receipts',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ orderId, amountMinor, currency }),
    },
  };
}
