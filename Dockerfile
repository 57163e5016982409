# syntax=docker/dockerfile:1

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Scripts would fetch a second Node.js and an embedded Postgres; neither is needed to compile.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY ops/patches ./ops/patches
RUN npm run prepare
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The optional dependencies are the embedded Postgres: in a container the database is a service of its own.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production \
    HTTP_HOST=0.0.0.0
COPY --from=dependencies /app/node_modules ./node_modules
# The driver with ops/patches applied.
COPY --from=build /app/node_modules/postgres ./node_modules/postgres
COPY package.json ./
COPY drizzle ./drizzle
COPY --from=build /app/dist ./dist
# A number, so that Kubernetes' runAsNonRoot can see that it is not root.
USER 10001:10001
EXPOSE 9464
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["node", "dist/main.js", "healthcheck"]
# Exec form: node is process 1 and gets SIGTERM itself. With Node's own 16 MB for young objects a manifest takes 40 MB more.
ENTRYPOINT ["node", "--max-semi-space-size=4", "dist/main.js"]
CMD ["run"]
