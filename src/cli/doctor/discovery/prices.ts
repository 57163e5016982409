import { plural } from '../../../lib/format.ts';
import { readBulk } from '../../../partner/bulk-answer.ts';
import { harmless } from '../../../status/style.ts';
import { fail, type CheckResult, ok, warn } from '../check.ts';
import { answered, type FieldNames, type Part, several, shown, type Evidence } from './plan.ts';
import { entriesIn, formsIn, type FormsSeen, type PriceShape, priceShape } from './shapes.ts';

/** Finds where the price is, and what could be read of the sample. */
export function pricePart(evidence: Evidence, names: FieldNames): Part {
  const bodies = answered(evidence);
  if (bodies.length === 0) return {};
  const entries = bodies.flatMap((body) => entriesIn(body));
  const live = new Set(evidence.sample?.live ?? []);
  const forms = formsIn(entries, names.price, names.known.price, names.known.also);
  const shapeOf = (isLive: boolean) =>
    priceShape(
      entries.filter(({ sku }) => live.has(sku) === isLive),
      names.price,
      forms,
    );
  const shapes = { snapshot: shapeOf(false), live: shapeOf(true) };
  const found = [shapes.snapshot, shapes.live].filter((shape) => shape !== null);
  const unknown = shapes.live !== null ? [] : ['price of a live entry: no answer held one'];
  if (found.length === 0) {
    const [unreadable] = bodies.flatMap((body) => unreadableIn(body, names));
    if (unreadable !== undefined)
      return {
        findings: [fail('prices', `records cannot be parsed: ${unreadable}`, 'ask the partner')],
        unknown,
      };
    const text = 'no size_map entry in the sample';
    return { findings: [warn('prices', text, 'run doctor again later, or check one SKU by hand')], unknown };
  }
  const findings = [...formFindings(forms), ...priceFindings(found, forms)];
  const fields = [...new Set(found.flatMap((shape) => (shape.doubtful ? [] : (shape.fields ?? []))))];
  return {
    findings,
    unknown,
    settings: fields.length === 0 ? {} : { PARTNER_PRICE_FIELDS: fields.join(',') },
  };
}

function unreadableIn(body: unknown, names: FieldNames): string[] {
  const reading = readBulk(body, { priceFields: names.price, skuField: names.sku });
  if (!reading.ok) return [reading.problem];
  return [...reading.value.results.values()].flatMap((record) =>
    'unreadable' in record ? [record.unreadable] : [],
  );
}

/** Warns if the mirror holds a form that no entry has. It still counts for an hour after the last entry that had it. */
function formFindings({ held, isHeld }: FormsSeen): CheckResult[] {
  if (held === null || isHeld) return [];
  const read = held.field === null ? 'plain numbers' : shown(held.field);
  const text = `the mirror reads ${read}, and no entry in the sample has that any longer`;
  const atOnce = held.field === null ? '' : '; at once where PARTNER_PRICE_FIELDS is without it';
  return [
    warn('prices', text, `after an hour without it the mirror reads what entries have instead${atOnce}`),
  ];
}

function priceFindings(shapes: readonly PriceShape[], forms: FormsSeen): CheckResult[] {
  const total = (of: (shape: PriceShape) => number) => shapes.reduce((sum, shape) => sum + of(shape), 0);
  const [entries, read] = [total((shape) => shape.entries), total((shape) => shape.read)];
  const candidates = [...new Set(shapes.flatMap((shape) => shape.candidates))];
  const fields = [...new Set(shapes.flatMap((shape) => shape.fields ?? []))];
  const variable = 'PARTNER_PRICE_FIELDS';
  const set = `set ${variable}=${harmless(fields.join(','))}`;
  if (shapes.some(({ doubtful }) => doubtful)) {
    const text = `every price read is below 50 THB; numeric fields: ${several(candidates)}`;
    return [
      warn(
        'prices',
        text,
        fields.length === 0
          ? `set ${variable} to the right field`
          : `compare one price by hand; if it is wrong, ${set}`,
      ),
    ];
  }
  if (shapes.some((shape) => shape.fields === null)) {
    const might = candidates.length === 0 ? '' : `; numeric fields: ${several(candidates)}`;
    return [
      fail(
        'prices',
        `no readable price in ${entries - read} of ${entries} size_map entries${might}`,
        `set ${variable} to the field that holds it`,
      ),
    ];
  }
  const field = forms.form?.field ?? null;
  if (field !== null && read > 0 && shapes.some((shape) => shape.read === 0)) {
    const text = `SKUs differ in the field of their price: ${read} of ${entries} entries read, by ${shown(field)}`;
    return [fail('prices', text, 'ask the partner: of several fields the mirror reads one')];
  }
  if (shapes.some((shape) => shape.read === 0))
    return [fail('prices', `the price is in ${several(fields)}: ${read} of ${entries} entries read`, set)];
  if (read < entries)
    return [
      warn(
        'prices',
        `${entries - read} of ${entries} entries have no readable price`,
        'check catalog.prices.entry',
      ),
    ];
  const [named, plain] = [total(({ skus }) => skus.named), total(({ skus }) => skus.plain)];
  const where = fields.length === 0 ? 'plain numbers, no field name needed' : `in ${several(fields)}`;
  if (named === 0 || plain === 0) return [ok('prices', `${entries} size_map entries read: ${where}`)];
  const both =
    `${entries} size_map entries of two forms read: ${where} for ${named} ${plural(named, 'SKU')}, ` +
    `plain numbers for ${plain} ${plural(plain, 'SKU')}`;
  return [
    ok('prices', forms.readsOther ? both : `${both}; the mirror reads both once three answers have had both`),
  ];
}
