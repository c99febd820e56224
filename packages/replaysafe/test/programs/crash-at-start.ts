import { createLifecycle, installSignals } from '../../src/lifecycle/index.js';

installSignals(createLifecycle());
throw new Error('boom', { cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }) });
