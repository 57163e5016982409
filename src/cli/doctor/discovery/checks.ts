import { readDelta } from '../../../partner/delta-answer.ts';
import { manifestFaults, manifestFields } from '../../../partner/manifest-answer.ts';
import { harmless } from '../../../status/style.ts';
import { fail, ok, warn } from '../check.ts';
import {
  answered,
  type Discovered,
  type FieldNames,
  type Part,
  several,
  shown,
  bodyKeyOf,
  confirmedToken,
  type Evidence,
  rejectedTokens,
} from './plan.ts';
import { pricePart } from './prices.ts';
import { bulkElements, deltaElements, type ElementShape } from './shapes.ts';

const MESSAGE_LENGTH = 160;

/** Judges all evidence. Pure. No value of an answer gets into the findings, except for the words of a refusal. */
export function discovered(evidence: Evidence, names: FieldNames): Discovered {
  const parts = [
    urlPart(evidence, names),
    tokenPart(evidence, names),
    filePart(evidence),
    bodyPart(evidence, names),
    pricePart(evidence, names),
    listPart(evidence, names),
    deltaPart(evidence),
  ];
  return {
    findings: parts.flatMap(({ findings = [] }) => findings),
    settings: Object.assign({}, ...parts.map(({ settings = {} }) => settings)) as Record<string, string>,
    unknown: parts.flatMap(({ unknown = [] }) => unknown),
  };
}

function readBy(body: unknown, { manifestUrl, snapshotId, known: { manifest: known } }: FieldNames) {
  const options = { urlField: manifestUrl ?? undefined, snapshotIdField: snapshotId ?? undefined, known };
  return { fields: manifestFields(body, options), faults: manifestFaults(body, options) };
}

function urlPart({ manifest, sample }: Evidence, names: FieldNames): Part {
  if (manifest?.kind !== 'ok') return {};
  const { fields, faults } = readBy(manifest.body, names);
  const variable = 'PARTNER_MANIFEST_URL_FIELD';
  const path = sample?.urlPath ?? fields.url;
  if (path === null) {
    const { problem, hint } = faults.url ?? { problem: 'not found', hint: 'ask the partner' };
    return { findings: [fail('manifest url', problem, hint)] };
  }
  const settings: Record<string, string> = sample?.urlPath === path ? { [variable]: path } : {};
  if (fields.url === path) return { findings: [ok('manifest url', `in ${shown(path)}`)], settings };
  const instead =
    names.manifestUrl === null ? 'it is not detected by shape' : `not in ${shown(names.manifestUrl)}`;
  return {
    findings: [fail('manifest url', `in ${shown(path)}; ${instead}`, `set ${variable}=${harmless(path)}`)],
    settings,
  };
}

function tokenPart({ manifest, delta }: Evidence, names: FieldNames): Part {
  if (manifest?.kind !== 'ok') return {};
  const variable = 'PARTNER_SNAPSHOT_ID_FIELD';
  const { fields, faults } = readBy(manifest.body, names);
  const confirmed = confirmedToken(delta);
  if (confirmed !== null) {
    const settings = { [variable]: confirmed };
    if (fields.snapshotId === confirmed)
      return { findings: [ok('snapshot id', `in ${shown(confirmed)}; the delta accepts it`)], settings };
    const instead =
      fields.snapshotId === null
        ? names.snapshotId === null
          ? 'it is not detected by shape'
          : `not in ${shown(names.snapshotId)}`
        : `not in ${shown(fields.snapshotId)}`;
    const text = `in ${shown(confirmed)}: the delta accepts it; ${instead}`;
    return { findings: [fail('snapshot id', text, `set ${variable}=${harmless(confirmed)}`)], settings };
  }
  const remedy = `set ${variable} to the field whose value the delta accepts as since`;
  const unknown = [`${variable}: not confirmed by a delta`];
  if (fields.snapshotId === null) {
    const candidates = manifest.candidates.snapshotId.map(({ path }) => path);
    const might = candidates.length === 0 ? '' : `; candidates: ${several(candidates)}`;
    const problem = `${faults.snapshotId?.problem ?? 'not found'}${might}`;
    const hint = faults.snapshotId?.misfit === true ? faults.snapshotId.hint : remedy;
    return { findings: [fail('snapshot id', problem, hint)], unknown };
  }
  if (rejectedTokens(delta).includes(fields.snapshotId))
    return {
      findings: [
        fail('snapshot id', `the delta does not accept the value of ${shown(fields.snapshotId)}`, remedy),
      ],
      unknown,
    };
  return {
    findings: [ok('snapshot id', `in ${shown(fields.snapshotId)}, not tested with the delta`)],
    unknown,
  };
}

function filePart({ manifest, sample }: Evidence): Part {
  if (manifest?.kind !== 'ok' || sample === null) return {};
  if (sample.problem !== null)
    return { findings: [fail('manifest file', sample.problem.message, sample.problem.hint)] };
  if (sample.urlPath === null) return {};
  const { snapshot, live } = sample;
  return snapshot.length + live.length > 0
    ? { findings: [ok('manifest file', 'can be downloaded and parsed')] }
    : { findings: [warn('manifest file', 'is empty', 'ask the partner')] };
}

function bodyPart(evidence: Evidence, names: FieldNames): Part {
  const { bulk } = evidence;
  const variable = 'PARTNER_BULK_BODY_KEY';
  const key = bodyKeyOf(evidence, names.bulkBodyKey);
  const last = bulk.at(-1);
  if (last === undefined) return { unknown: [`${variable}: no bulk call was made`] };
  if (key !== null) {
    const settings = { [variable]: key };
    if (key === names.bulkBodyKey)
      return { findings: [ok('bulk body', `the partner reads the SKUs from ${shown(key)}`)], settings };
    const text = `the partner reads ${shown(key)}, not ${shown(names.bulkBodyKey)}`;
    return { findings: [fail('bulk body', text, `set ${variable}=${harmless(key)}`)], settings };
  }
  const unknown = [`${variable}: the partner reads none of the names that were tried`];
  const remedy = `ask the partner for the body key, and set ${variable} to it`;
  const tried = new Set(bulk.flatMap(({ sent }) => [...sent.keys()])).size;
  if (last.kind === 'ok')
    return {
      findings: [fail('bulk body', `the answer contains none of the SKUs sent under ${tried} names`, remedy)],
      unknown,
    };
  if (last.kind !== 'bad-request') return { unknown };
  const said = messageOf(last.body);
  const text = `rejected under ${tried} names${said === null ? '' : `; the partner says: ${said}`}`;
  return { findings: [fail('bulk body', text, remedy)], unknown };
}

/** Returns the refusal's `message`, quoted and shortened, or null if the body has none. */
function messageOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null || !('message' in body)) return null;
  const { message } = body;
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  return text === undefined ? null : `"${harmless(text).slice(0, MESSAGE_LENGTH)}"`;
}

function listPart(evidence: Evidence, names: FieldNames): Part {
  const variable = 'PARTNER_SKU_FIELD';
  const sent = evidence.bulk.flatMap((attempt) => [...attempt.sent.values()].flat());
  const known = new Set([...sent, ...(evidence.sample?.snapshot ?? []), ...(evidence.sample?.live ?? [])]);
  const places: readonly (readonly [string, readonly (ElementShape | null)[]])[] = [
    ['bulk', answered(evidence).map((body) => bulkElements(body, known))],
    ['delta', evidence.delta.map(({ kind, body }) => (kind === 'ok' ? deltaElements(body, known) : null))],
  ];
  const unknown = places
    .filter(([place, shapes]) => shapes.every((shape) => shape === null) && asked(evidence, place))
    .map(([place]) => `form of SKUs in the lists of the ${place}: the answers held none`);
  const shapes = places.flatMap(([, all]) => all).filter((shape) => shape !== null);
  if (shapes.length === 0) return { unknown };
  const objects = shapes.filter(({ kind }) => kind === 'object');
  if (objects.length === 0)
    return { findings: [ok('lists', 'hold SKUs as plain text, no field name needed')], unknown };
  const fields = [...new Set(objects.map(({ field }) => field))];
  const [field] = fields;
  if (fields.length !== 1 || field === null || field === undefined) {
    const members = [...new Set(objects.flatMap((shape) => shape.members))];
    return {
      findings: [
        fail(
          'lists',
          `hold objects with ${several(members)}`,
          `set ${variable} to the field that holds the SKU`,
        ),
      ],
      unknown,
    };
  }
  const settings = { [variable]: field };
  return field === names.sku
    ? { findings: [ok('lists', `hold the SKU in ${shown(field)}`)], settings, unknown }
    : {
        findings: [
          fail(
            'lists',
            `hold the SKU in ${shown(field)}, not in ${shown(names.sku)}`,
            `set ${variable}=${harmless(field)}`,
          ),
        ],
        settings,
        unknown,
      };
}

const asked = (evidence: Evidence, place: string): boolean =>
  place === 'bulk' ? answered(evidence).length > 0 : evidence.delta.some(({ kind }) => kind === 'ok');

function deltaPart({ delta }: Evidence): Part {
  const answers = delta.filter(({ kind }) => kind === 'ok');
  // Another check covers the names of members; here only the frame is read.
  const frames = answers.map(({ body }) => readDelta(emptied(body), { priceFields: [], skuField: 'sku' }));
  const wrong = frames.find((reading) => !reading.ok);
  if (wrong !== undefined && !wrong.ok)
    return { findings: [fail('delta', wrong.problem, 'ask the partner')] };
  return answers.length === 0 ? {} : { findings: [ok('delta', 'answers')] };
}

function emptied(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(
    Object.entries(body).map(([name, value]): [string, unknown] => [name, Array.isArray(value) ? [] : value]),
  );
}
