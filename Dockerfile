# Only the base image depends on the processor architecture. So build steps run on the builder's own architecture (which engines
# without BuildKit do not name), and an image for another architecture needs no emulation.

# The index of all architectures; `.ci/digests` renews it.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

FROM --platform=${BUILDPLATFORM:-linux} ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No package's install script is needed.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY ops/patches ./ops/patches
RUN npm run prepare
COPY ops/program ./ops/program
COPY src ./src
RUN npm run build:program

FROM --platform=${BUILDPLATFORM:-linux} ${NODE_IMAGE} AS app
WORKDIR /app
COPY package.json package-lock.json ./
# The optional dependencies are a second Node.js and the embedded Postgres: in a container the database is a service of its own.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund
# The program contains them. What stays tells scanners which they are, and has their licences.
RUN find node_modules -type f ! -name package.json ! -iname 'licen[cs]e*' ! -iname 'notice*' ! -iname 'copying*' -delete && \
    find node_modules -depth \( -type l -o -type d -empty \) -delete
COPY --from=build /app/dist ./dist
COPY LICENSE ./
COPY drizzle ./drizzle
# Copied files keep the modes of the checkout, which under umask 077 only root could read.
RUN chmod -R a+rX . && \
    printf '#!/bin/sh\nexec node -- /app/dist/bin.js "$@"\n' >/usr/local/bin/catalog-mirror && \
    chmod 755 /usr/local/bin/catalog-mirror

FROM ${NODE_IMAGE}
WORKDIR /app
ENV NODE_ENV=production \
    HTTP_HOST=::
# The most stable layers come first, so that an update downloads little.
COPY --from=app /app/node_modules ./node_modules
COPY --from=app /app/package.json /app/LICENSE ./
COPY --from=app /app/drizzle ./drizzle
COPY --from=app /app/dist ./dist
# For `docker exec`: the entrypoint needs no shell.
COPY --from=app /usr/local/bin/catalog-mirror /usr/local/bin/catalog-mirror
# A number, so that Kubernetes' runAsNonRoot can see that it is not root.
USER 10001:10001
EXPOSE 9464
# --start-interval, without which a daemon counts as starting for half a minute, needs Docker 25 or newer to build.
# The arguments of process 1 tell what the container runs: the daemon (also without a command), the sandbox on its usual port, or
# another command (follow), which listens nowhere. Only the command counts, the first word that is neither --env-file nor its value
# behind the program, which an init names as it was given: the file, or catalog-mirror of the PATH.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --start-interval=2s --retries=3 \
    CMD case "$(tr '\0' '\n' </proc/1/cmdline | \
        sed -nE '1,/(^|\/)(dist\/(main|bin)\.js|catalog-mirror)$/{/(\.js|catalog-mirror)$/!d;$s/.*/run/p;d};/^--env-file(=|$)/{/=/!n;$s/.*/run/p;d};p;q')" in \
        sandbox) exec node -e "require('http').get('http://127.0.0.1:8080/sandbox/state', { agent: false }, (r) => process.exit([200, 401].includes(r.statusCode) ? 0 : 1)).on('error', () => process.exit(1))";; \
        run | -*) exec node dist/main.js healthcheck;; \
    esac
# Exec form: node is process 1 and receives SIGTERM itself. With Node's default semi-space of 16 MB a manifest takes 40 MB more.
# SIGUSR1 opens no debugger.
ENTRYPOINT ["node", "--max-semi-space-size=4", "--disable-sigusr1", "--", "dist/main.js"]
CMD ["run"]

# Last, because they differ with every build: the layers above stay as they are. `npm run docs` writes version and addresses.
ARG NODE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=unknown
# Builds of one commit are equal unless a time is given.
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="catalog-mirror" \
    org.opencontainers.image.description="Continuously syncs a marketplace's catalog and lowest prices into your own Postgres" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.url="https://github.com/catalog-mirror/catalog-mirror" \
    org.opencontainers.image.source="https://github.com/catalog-mirror/catalog-mirror" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.created="${CREATED}" \
    org.opencontainers.image.base.name="${NODE_IMAGE}"
