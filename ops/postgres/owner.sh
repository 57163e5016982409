#!/usr/bin/env bash
# Runs once, when the postgres image makes a new cluster: makes the daemon's role, an owner of one database without further rights,
# and the roles that it may grant but not create. Its password is POSTGRES_PASSWORD, which the image reads from its secret file. The
# superuser keeps none: it can be used in the container only, over the socket.
set -euo pipefail
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" --dbname=postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE catalog_reader;
CREATE ROLE catalog_watcher;
CREATE ROLE catalog_mirror LOGIN PASSWORD :'password';
CREATE DATABASE catalog OWNER catalog_mirror;
ALTER ROLE CURRENT_USER PASSWORD NULL;
SQL
