/** A fact that the partner does not document. */
export interface OpenFact {
  readonly unknown: string;
  /** How the mirror deals with it, or the sandbox if only it is concerned. */
  readonly handling: string;
}

/** The sandbox needs names and rules for what a seller's own services call; the mirror does not. */
const INVENTED = 'The mirror does not need it. The sandbox uses names and rules of its own.';

/**
 * What the partner's documentation leaves open, by section. The ids end in `.open` and are cited like those of
 * rules.
 */
export const OPEN = {
  '2.2.open': { unknown: 'The other fields of an order.', handling: INVENTED },
  '2.3.open': { unknown: 'The fields of a listing.', handling: INVENTED },
  '2.4.open': {
    unknown: 'What an entry of `size_map` looks like, and the types in `product`.',
    handling:
      'An entry may be a number, numeric text or an object; `PARTNER_PRICE_FIELDS` names the price in an object, and `doctor` finds that name. The entry and the whole `product` are stored as they came.',
  },
  '2.5.open': {
    unknown: 'The elements of `not_found`, `deferred` and `errors`; the types of the two counts.',
    handling:
      'Lists of SKUs or of objects are read (`PARTNER_SKU_FIELD`, which `doctor` finds), and objects keyed by SKU; counts may be numeric text.',
  },
  '2.7.open': {
    unknown: 'The names of the URL and of the snapshot identifier.',
    handling:
      'They are found by their shape, or pinned by `PARTNER_MANIFEST_URL_FIELD` and `PARTNER_SNAPSHOT_ID_FIELD`. `doctor` prints both.',
  },
  '2.8.open': {
    unknown: 'Other fields of a delta, and the elements of its lists.',
    handling: 'Other fields are ignored; elements are read as those of a bulk answer.',
  },
  '3.open': { unknown: 'The state that a confirmation leads to.', handling: INVENTED },
  '4.1.open': {
    unknown: "The name of the SKU list in a bulk call's body.",
    handling: '`PARTNER_BULK_BODY_KEY`; `doctor` finds it by one call that sends many names (4.1.bulk).',
  },
  '4.3.open': {
    unknown: 'The values of `type`; the bodies of an order, a payout and a label.',
    handling: INVENTED,
  },
  '4.4.open': { unknown: 'The bodies that writes take and most of those they answer.', handling: INVENTED },
  '8.open': {
    unknown: 'The ceiling on live computations over all calls; the largest body of a request.',
    handling:
      'The ceiling is learned from deferrals. Calls hold 100 SKUs at most, and `BULK_MAX_SKUS` makes them smaller.',
  },
  '9.open': {
    unknown: 'How the interface is versioned: paths carry no version.',
    handling: 'An answer whose shape is not as documented is an error of its own and changes nothing.',
  },
} as const satisfies Record<string, OpenFact>;
