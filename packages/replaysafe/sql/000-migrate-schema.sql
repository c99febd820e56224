do $$
begin
  -- IF NOT EXISTS would ask for the right to create schemas even where an administrator has made this one.
  if to_regnamespace('{{schema}}') is null then
    create schema {{schema}};
  end if;
end
$$;

create table {{schema}}.schema_migration (
  name text primary key,
  checksum text not null,
  breaking boolean not null,
  applied_at timestamptz not null default clock_timestamp()
);

comment on table {{schema}}.schema_migration is 'replaysafe: migrations that are applied, by file name';
comment on column {{schema}}.schema_migration.breaking is
  'a version of the library that does not know this migration must not use the schema';

-- The first 48 bits are milliseconds, the next 12 a fraction of one: ids made one after the other sort so, which keeps
-- the index of a busy table in memory. One expression with one look at the clock, so that the planner can inline it.
do $$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create function {{schema}}.uuid_v7() returns uuid language sql volatile parallel safe as
      'select uuidv7()';
  else
    create function {{schema}}.uuid_v7() returns uuid language sql volatile parallel safe as
      $body$
        select (
          overlay(
            lpad(to_hex((extract(epoch from clock_timestamp()) * 4096000)::bigint), 15, '0')
            placing '7' from 13 for 0
          ) || substr(gen_random_uuid()::text, 20)
        )::uuid
      $body$;
  end if;
end
$$;
