export { createHttpClient, type HttpClient, type HttpClientOptions } from './http-client.js';
export type { CallOptions, HttpMethod } from './call.js';
export type { HttpResponse } from './response.js';
export { operationKey } from './key.js';
