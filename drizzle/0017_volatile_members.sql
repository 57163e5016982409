CREATE TABLE "catalog_internal"."muted_members" (
	"part" text COLLATE "C" NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "muted_members_part_path_pk" PRIMARY KEY("part","path")
);
