-- One row for each worker of which one runs over all pods. Times are the database's, so that no pod's clock matters; only
-- `slot` comes from a schedule.
create table {{schema}}.worker_lease (
  name text not null,
  -- Who runs it now, or was running it when its lease ran out. Null: the last run has ended, or there was none.
  owner text,
  -- Raised by each claim: the fence. A run's writes are good while the row still has the epoch it was given.
  epoch bigint not null,
  leased_until timestamptz,
  -- What the next run is measured from, over all pods.
  last_finished_at timestamptz,
  -- After a failed run, and before the first one where that shall wait.
  not_before timestamptz,
  failures integer not null default 0,
  -- The moment of the schedule that the latest claim was for.
  slot timestamptz,

  constraint worker_lease_pkey primary key (name),
  -- Makes the epoch part of a key. A claim is thus the change of a key and waits for whoever has locked the row FOR KEY SHARE,
  -- which is how a run guards its writes; a renewal is not, and passes.
  constraint worker_lease_epoch_is_key unique (name, epoch),
  constraint worker_lease_epoch check (epoch > 0),
  constraint worker_lease_held check ((owner is null) = (leased_until is null)),
  constraint worker_lease_failures check (failures >= 0)
);
