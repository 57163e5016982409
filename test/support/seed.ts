/**
 * SQL: a function that resets a table to its copy in the schema `seed`. Generated columns accept no values; a
 * table without columns only serves to be locked, and has no rows.
 */
export const CREATE_REFILL = `
  create function seed.refill(target regclass, kept text) returns void language plpgsql as $$
  declare
    columns text := (
      select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
      where attrelid = target and attnum > 0 and not attisdropped and attgenerated = ''
    );
  begin
    if columns is not null then
      execute format('delete from %s', target);
      execute format('insert into %1$s (%2$s) overriding system value select %2$s from seed.%3$I', target, columns, kept);
    end if;
  end $$`;
