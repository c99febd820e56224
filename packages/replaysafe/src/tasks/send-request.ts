import { type TaskHandler } from './handler.js';

/** The input of a task that is one HTTP call. */
export interface RequestInput {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Sent as it is. For JSON: `JSON.stringify(…)` and a `content-type` among the headers. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer that ended it. */
export interface RequestResult {
  readonly status: number;
  readonly body: string;
}

/** The part of `createHttpClient` that is used. */
export interface RequestSender {
  request(
    method: RequestInput['method'],
    path: string,
    options: {
      readonly idempotencyKey: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly signal: AbortSignal;
    },
  ): Promise<{ readonly status: number; text(): string; expect(): unknown }>;
}

/**
 * A handler that sends the call of its input, with the task's key and the same bytes on every try, until it is answered
 * with 2xx. Another answer that will not change ends the task as FAILED, any other is tried again.
 */
export function sendRequest(client: RequestSender): TaskHandler<RequestInput, RequestResult> {
  return async ({ key, input, signal, traceparent }) => {
    const { method, path, body } = input;
    const headers = { ...input.headers, ...(traceparent !== undefined && { traceparent }) };
    const answer = await client.request(method, path, {
      idempotencyKey: key,
      headers,
      signal,
      ...(body !== undefined && { body }),
    });
    answer.expect();
    return { status: answer.status, body: answer.text() };
  };
}
