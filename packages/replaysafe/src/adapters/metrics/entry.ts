import { type EventName } from '../../events.js';

export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit:
    | 'seconds'
    | 'events'
    | 'messages'
    | 'requests'
    | 'connections'
    | 'runs'
    | 'tries'
    | 'resources'
    | 'errors'
    | 'changes'
    | 'tasks';
  /** Each has few values: no ids, no keys, no paths, no names made up at start. */
  readonly labels: readonly string[];
  /** The event that feeds it, or the call that is asked on a scrape. */
  readonly from: EventName | 'lifecycle.traffic()' | 'outbox.status()';
  readonly help: string;
}
