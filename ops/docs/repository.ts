import { readFileSync } from 'node:fs';

const { repository, version } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as {
  repository: { url: string };
  version: string;
};

/** The repository's page, by `repository` of package.json: the one place where it is written. */
export const REPOSITORY = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

/** Where a file of the repository can be read; its path follows after a slash. */
export const FILES = `${REPOSITORY}/blob/main`;

const RULES_LINK = /^( +runbook_url: )'\{\{ with .*\{\{ end \}\}\/(ops\/runbooks\/[\w-]+\.md)'$/gm;
/** Expected ones; a quoted one is of another place. */
const CASES_LINK = /^( +runbook_url: )https:\/\/\S+\/(ops\/runbooks\/[\w-]+\.md)$/gm;
const CONTACT = /^( +url: )https:\/\/\S+?\/((?:blob|security)\/\S+)$/gm;
const LABEL = /(org\.opencontainers\.image\.(?:source|url)=")[^"]*/g;

/** How each file that names the repository does so: `npm run docs` writes them anew. */
const WRITTEN: Readonly<Record<string, (text: string) => string>> = {
  'ops/prometheus/alerts.yml': (text) =>
    text.replace(
      RULES_LINK,
      `$1'{{ with $externalLabels.catalog_mirror_repository }}{{ . }}{{ else }}${FILES}{{ end }}/$2'`,
    ),
  'ops/prometheus/tests/alerts.yml': (text) => text.replace(CASES_LINK, `$1${FILES}/$2`),
  'ops/prometheus/tests/fleet.yml': (text) => text.replace(CASES_LINK, `$1${FILES}/$2`),
  'ops/prometheus/tests/freshness.yml': (text) => text.replace(CASES_LINK, `$1${FILES}/$2`),
  'ops/prometheus/tests/unread.yml': (text) => text.replace(CASES_LINK, `$1${FILES}/$2`),
  '.github/ISSUE_TEMPLATE/config.yml': (text) => text.replace(CONTACT, `$1${REPOSITORY}/$2`),
  Dockerfile: (text) =>
    text.replace(LABEL, `$1${REPOSITORY}`).replace(/^ARG VERSION=.*$/m, `ARG VERSION=${version}`),
};

/** The files that name the repository beside generated ones, each with its text. */
export function namingRepository(read: (path: string) => string): ReadonlyMap<string, string> {
  return new Map(Object.entries(WRITTEN).map(([path, write]) => [path, write(read(path))]));
}
