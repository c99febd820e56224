export { createHttpClient, type HttpClient } from './http-client.js';
export type { HttpClientOptions } from './http-client-options.js';
export type { CallOptions, HttpMethod } from './call.js';
export type { HttpResponse } from './response.js';
export { operationKey } from './key.js';
export { isOutcomeUnknown, type OutcomeUnknown } from './failure.js';
