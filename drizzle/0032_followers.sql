CREATE TABLE "catalog_internal"."dead_letters" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog_internal"."dead_letters_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"follower" text COLLATE "C" NOT NULL,
	"message_id" text NOT NULL,
	"position_from" bigint NOT NULL,
	"position_to" bigint NOT NULL,
	"changes" integer NOT NULL,
	"attempts" integer NOT NULL,
	"last_status" integer,
	"last_said" text,
	"failing_since" timestamp with time zone NOT NULL,
	"buried_at" timestamp with time zone DEFAULT now() NOT NULL,
	"body" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."followers" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"position" bigint NOT NULL,
	"after_sku" text COLLATE "C",
	"sending_to" bigint,
	"delivery" text NOT NULL,
	"holder" bigint,
	"pid" integer,
	"backend_start" timestamp with time zone,
	"held_by" text,
	"failures" integer DEFAULT 0 NOT NULL,
	"refusals" integer DEFAULT 0 NOT NULL,
	"failing_since" timestamp with time zone,
	"last_status" integer,
	"last_said" text,
	"last_at" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "followers_delivery" CHECK ("catalog_internal"."followers"."delivery" in ('stdout', 'webhook'))
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."dead_letters" ADD CONSTRAINT "dead_letters_follower_followers_name_fk" FOREIGN KEY ("follower") REFERENCES "catalog_internal"."followers"("name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "dead_letters_follower" ON "catalog_internal"."dead_letters" USING btree ("follower","id");
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.followers IS 'Positions of `catalog-mirror follow`, by name.';
COMMENT ON TABLE catalog_internal.dead_letters IS 'Batches of changes that a receiver of `catalog-mirror follow --webhook` has refused for good.';
--> statement-breakpoint
-- Whether a session of this database is there that has this number and began then; of a session of another role the beginning is not shown. An advisory lock
-- would not do: anybody who may connect could hold it.
CREATE OR REPLACE FUNCTION catalog_internal.session_lives(pid integer, began timestamptz) RETURNS boolean
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT EXISTS (
    SELECT FROM pg_stat_activity a
    WHERE a.pid = session_lives.pid AND a.datname = current_database() AND (a.backend_start IS NULL OR a.backend_start = session_lives.began)
  );
END;

REVOKE ALL ON FUNCTION catalog_internal.session_lives(integer, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- Every follower, and how far it is behind: changes after its position (10,000 are counted at most) and for how long the first of them has waited. A position
-- that is lost (CM001) is said of its follower, and hides no other.
CREATE OR REPLACE FUNCTION catalog_internal.followers_now()
RETURNS TABLE (name text, delivery text, "position" bigint, after_sku text, behind integer, behind_seconds double precision, lost boolean,
  held_by text, failures integer, failing_since timestamptz, last_status integer, last_said text, last_at timestamptz, dead_letters integer)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f catalog_internal.followers;
BEGIN
  FOR f IN SELECT * FROM catalog_internal.followers o ORDER BY o.name LOOP
    name := f.name; delivery := f.delivery; "position" := f."position"; after_sku := f.after_sku;
    failures := f.failures; failing_since := f.failing_since; last_status := f.last_status; last_said := f.last_said; last_at := f.last_at;
    held_by := CASE WHEN catalog_internal.session_lives(f.pid, f.backend_start) THEN f.held_by END;
    SELECT count(*) INTO dead_letters FROM catalog_internal.dead_letters d WHERE d.follower = f.name;
    behind := NULL; behind_seconds := NULL; lost := false;
    BEGIN
      SELECT count(*), coalesce(greatest(0, extract(epoch FROM clock_timestamp() - (array_agg(c.observed_at ORDER BY c."position"))[1])), 0)
      INTO behind, behind_seconds FROM catalog.changes(f."position", 10000) c;
    EXCEPTION WHEN SQLSTATE 'CM001' THEN
      lost := true;
    END;
    RETURN NEXT;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.followers_now() FROM PUBLIC;
