import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type Bom, shippedBom } from './bom.ts';

/*
 * npm run sbom
 * Writes sbom.cdx.json: what `npm ci --omit=dev` installs, by package-lock.json. npm's own `--omit=dev` also leaves out what
 * development needs as well as the program, hence the choice here.
 */

const PATCHES = 'ops/patches';
const FILE = 'sbom.cdx.json';

const { name } = JSON.parse(readFileSync('package.json', 'utf8')) as { name: string };
const whole = execFileSync(
  'npm',
  ['sbom', '--package-lock-only', '--sbom-type=application', '--sbom-format=cyclonedx'],
  { encoding: 'utf8', maxBuffer: 2 ** 28 },
);
const bom = shippedBom(JSON.parse(whole) as Bom, name, PATCHES, readdirSync(PATCHES));
writeFileSync(FILE, `${JSON.stringify(bom, null, 2)}\n`);
process.stdout.write(`${FILE}: ${bom.components.length} packages\n`);
