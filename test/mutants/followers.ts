import { faultsOf, type Mutant } from './mutant.ts';

/** Faults that lose a change, deliver one twice, blame a receiver, send to the wrong one, or falsify traces. */
export const FOLLOWERS: readonly Mutant[] = [
  ...faultsOf(
    'src/follow/delivery.ts',
    ['test/follow/delivery.test.ts'],
    ['followers: 410 is any refusal', "if (status === 410) return 'unwanted';", ''],
    ['followers: a redirect refuses', 'status >= 400 && status < 500', 'status >= 300 && status < 500'],
    ['followers: too many requests refuse', '425, 429]', '425]'],
    ['followers: an endpoint that is missing refuses', '403, 404, 405', '403, 405'],
    ['followers: a secret that was changed too soon refuses', '[401, ', '['],
    ['followers: all come back together', '(0.5 + random / 2)', '1'],
    ['followers: who asks to be left alone is not', 'Math.min(retryAfterMs ?? 0, LONGEST_ASKED_MS)', '0'],
    ["followers: a receiver's clock is ours", 'until - (Number.isNaN(from) ? now : from)', 'until - now'],
  ),
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/batches.pg.test.ts'],
    [
      'followers: what is too large is put aside whole',
      'isTooLarge(result) && batch.lines.length > 1',
      'false',
    ],
    ['followers: one change is made smaller for ever', '&& batch.lines.length > 1)', '&& attempts > 0)'],
    [
      'followers: what was delivered before a batch that is too large comes again',
      'this.#cut({ ...page, changes: left })',
      'this.#cut(page)',
    ],
    ['followers: each batch is tried whole', 'this.#limits = { ...this.#limits, bytes };', ''],
    ['followers: smaller batches never begin', '!isGone && !exceeds(first, this.#limits)', '!isGone'],
    [
      'followers: a batch under way is cut anew without a failure',
      'first === undefined || failures === 0)',
      'first === undefined)',
    ],
    ['followers: every batch begins a copy', "afterSku === '' && isFirst", 'afterSku !== null'],
    [
      'followers: a copy whose first SKUs pass no filter never begins',
      "if (page.copiedTo !== null && this.#kept.place.afterSku === '') this.#passedOver = page.copiedTo;\n    else if (",
      'if (',
    ],
  ),
  ...faultsOf(
    'src/partner/origin.ts',
    ['test/follow/webhook.test.ts'],
    ['followers: overlay networks are never called', "address?.range() === 'carrierGradeNat' &&", 'false &&'],
    ['followers: a metadata service is called', '&& address.toString() !== METADATA_V4', ''],
  ),
  ...faultsOf(
    'src/store/history/followers.ts',
    ['test/follow/names.pg.test.ts'],
    [
      'followers: letters overwrite the copy that came after them',
      "await client.query('delete from catalog_internal.dead_letters where follower = $1', [name]);",
      '{}',
    ],
  ),
  ...faultsOf(
    'src/follow/webhook.ts',
    ['test/follow/batches.pg.test.ts'],
    ['followers: no copy says that it begins', 'batch.copyBegins === true ?', 'false ?'],
  ),
  ...faultsOf(
    'src/cli/sql.ts',
    ['test/cli/exact-number.test.ts'],
    ['sql: numbers lose digits', 'return isKept && isExact', 'return isKept'],
    ['sql: the smallest numbers are zero', 'return isKept && isExact', 'return isExact'],
  ),
  ...faultsOf(
    'src/cli/sql.ts',
    ['test/cli/sql.e2e.test.ts'],
    ['sql: bigints are text', '[INT8]: exactNumber,', ''],
    ['sql: tables have numbers as JSON does', '...(isJson && {', '...(true && {'],
  ),
  ...faultsOf(
    'drizzle/0046_calibration_tenth.sql',
    ['test/store/calibration.pg.test.ts'],
    ['calibration: a row is not found by its name', '::float8 AS tenth', '::real::float8 AS tenth'],
  ),
  ...faultsOf(
    'src/follow/webhook.ts',
    ['test/follow/message.test.ts'],
    ['followers: the id is not signed', '`${id}.${timestamp}.${body}`', '`${timestamp}.${body}`'],
    ['followers: of two secrets one signs', 'secrets.map(', 'secrets.slice(0, 1).map('],
  ),
  ...faultsOf(
    'src/follow/webhook.ts',
    ['test/follow/webhook.test.ts', 'test/follow/webhook-ways.test.ts'],
    ['followers: webhooks pass by the proxy', 'way === null\n', 'way !== undefined\n'],
    [
      'followers: a proxy leads to this machine',
      'check: (host) => refuseResolved(host, reach)',
      'check: () => Promise.resolve()',
    ],
    [
      'followers: nobody is told of a wrong clock',
      'return aheadMs !== null && status >= 400 && status < 500 ?',
      'return status < 0 && aheadMs !== null ?',
    ],
    ['followers: names lead to private addresses', "if (!allowPrivate) return 'public';", ''],
    [
      'followers: what is said beside a redirect',
      'if (status >= 300 && status < 400) return',
      'if (status >= 400 && status < 400) return',
    ],
  ),
  ...faultsOf(
    'src/follow/batch.ts',
    ['test/follow/batch.test.ts'],
    ['followers: the text of a change commands a terminal', 'return shownJson({', 'return JSON.stringify({'],
  ),
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/follower.pg.test.ts'],
    [
      'followers: what failed counts as delivered',
      "if (result.outcome === 'delivered') {",
      "if (result.outcome !== 'unwanted') {",
    ],
    [
      'followers: a receiver that is down loses batches',
      "if (result.outcome === 'refused' && refusals >= attempts",
      'if (failures >= attempts',
    ],
    [
      'followers: a batch under way is not written down',
      'await held?.sending(batch.last, this.#kept.place);',
      '',
    ],
    [
      'followers: what did not pass the filter is read for ever',
      'await this.#keep(page.readTo, page.copiedTo, null);',
      '',
    ],
    [
      'followers: nobody backs off',
      'await clock.sleep(retryInMs, stopped);',
      'await clock.sleep(0, stopped);',
    ],
  ),
  ...faultsOf(
    'src/store/history/feed.ts',
    ['test/follow/follower.pg.test.ts'],
    [
      'followers: a deleted SKU keeps its prices at the receiver',
      "or c.kind = 'price' and c.new_price is null",
      'or false',
    ],
  ),
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/restored.pg.test.ts'],
    [
      'followers: a restored database says where they are',
      'if (known.place !== null) await goneOn(client, held, known.place, taken);',
      '',
    ],
    ['followers: a restored database is not known as one', '  await noteLineage(client);\n', ''],
    ['followers: what is to be tried again ends them', '    isConflict(error) ||\n', ''],
    ['followers: who is not known any more begins anew', 'known.place === null ? from : null', 'from'],
  ),
  ...faultsOf(
    'src/store/history/followers.ts',
    ['test/follow/names.pg.test.ts'],
    ['followers: two hold a name', 'if (row.is_held) {', 'if (row.is_held && begun !== null) {'],
    [
      'followers: a reset keeps the position',
      'set position = $2, after_sku',
      'set position = position + 0 * $2, after_sku',
    ],
  ),
  ...faultsOf(
    'src/lib/format.ts',
    ['test/follow/keeping.pg.test.ts'],
    ['followers: one dead letter is told of as many', '(n === 1 ? one : many)', '(n < 1 ? one : many)'],
  ),
  ...faultsOf(
    'src/client/follow.ts',
    ['test/client/follow.pg.test.ts'],
    ['clients: what apply throws is lost', 'throw isWell ? new OwnFailure(error) : error;', ''],
    [
      'clients: what apply throws is tried again',
      'throw isWell ? new OwnFailure(error) : error;',
      'throw error;',
    ],
    ['clients: a lost position is never given up', 'onLost === undefined)', 'onLost !== undefined)'],
  ),
  ...faultsOf(
    'src/client/transact.ts',
    ['test/client/lost-connection.pg.test.ts'],
    [
      'clients: what is sent too late is sent into the next transaction',
      'if (this.#end !== null) return sent.reject(this.#end.error);',
      '',
    ],
    [
      'clients: what a lost connection leaves is waited for',
      'for (const statement of this.#sent) statement.reject(error);',
      '',
    ],
    [
      'clients: the next transaction begins beside the work',
      'await (working as Promise<T> | null)?.catch(() => {});',
      '',
    ],
    [
      'clients: the driver ends the next transaction for this one',
      'return transaction.settle(working);',
      'return working;',
    ],
  ),
  ...faultsOf(
    'src/client/position.ts',
    ['test/client/follow.pg.test.ts'],
    ['clients: two of one name apply both', 'where name = $1::text for update', 'where name = $1::text'],
    [
      'clients: a table that is made meanwhile is an error',
      'if (!isMadeMeanwhile(error)) throw error;',
      'throw error;',
    ],
  ),
  ...faultsOf(
    'src/client/read-batch.ts',
    ['test/client/follow.pg.test.ts'],
    [
      'clients: the first copy goes on behind its beginning',
      "return batchOf(changes, { at: 'copy', position, afterSku: last.sku, seen: last.position }, true);",
      "return batchOf(changes, { at: 'changes', position }, true);",
    ],
    [
      'clients: a batch is not all that was asked for',
      'const given = [position, String(most)];',
      'const given = [position, String(most - 1)];',
    ],
  ),
  ...faultsOf(
    'src/client/change.ts',
    ['test/client/change.test.ts'],
    [
      'clients: a member of a member replaces it',
      'merged(member(held, name), member(were, name), value)',
      'value',
    ],
  ),
  ...faultsOf(
    'drizzle/0034_copies_have_objects_last.sql',
    ['test/store/changes-model.pg.test.ts'],
    ['copies: a column is put over its object', "c.field = 'product', c.field DESC", 'c.field DESC'],
  ),
  ...faultsOf(
    'drizzle/0040_days_of_one_change.sql',
    ['test/store/price-at.pg.test.ts', 'test/store/daily-model.pg.test.ts'],
    [
      'history: days that are not counted yet have no changes',
      'SELECT c.position + 1 INTO first_id FROM catalog_internal.daily c',
      'SELECT 9223372036854775807 INTO first_id',
    ],
    [
      'history: days that somebody has deleted had no changes',
      'ELSIF EXISTS (SELECT FROM catalog.daily_prices p WHERE p.sku = price_at.sku) THEN',
      'ELSE',
    ],
    ['history: the day itself is over', 'p.day >= asked_day', 'p.day > asked_day'],
    ['history: a day has one change at most', 'CASE WHEN changes = 1 AND', 'CASE WHEN changes >= 1 AND'],
    ['history: nothing changes after the day', 'THEN held ELSE next_open END', 'THEN held ELSE NULL END'],
    [
      'history: nothing changes after a day that was counted long ago',
      'THEN h.old_price ELSE next_open END',
      'THEN h.old_price ELSE NULL END',
    ],
    [
      'history: a day that was counted long ago has one change at most',
      'IS NULL AND p.changes = 1 AND',
      'IS NULL AND',
    ],
    ['history: a day with one change begins with it', 'WHEN only_at > at THEN held', 'WHEN false THEN held'],
    [
      'history: nothing is known of the day on which it was first priced',
      'only_at > at AND held IS NOT NULL',
      'only_at > at',
    ],
    [
      'history: what is not counted changes nothing',
      'only_at <= at AND last_id IS NOT NULL',
      'only_at <= at',
    ],
    [
      'history: what was dropped of a day counts to it',
      'first_id > (SELECT d.last_value FROM catalog_internal.dropped_positions d)',
      'true',
    ],
    [
      'history: what a later day began with says nothing',
      'IF day > asked_day THEN',
      'IF day > asked_day + 1 THEN',
    ],
    ['history: a day begins with its correction', 'AND NOT size_type_changed THEN first', 'THEN first'],
  ),
  ...faultsOf(
    'src/telemetry/traces/sdk.ts',
    ['test/telemetry/tracing.test.ts'],
    ['traces: lost spans are told of once', 'lost += spans;', 'lost = spans;'],
    [
      'traces: a collector that is back is not told of',
      'if (ended?.say === true)',
      'if (ended?.say === false)',
    ],
  ),
  ...faultsOf(
    'src/telemetry/traces/sdk.ts',
    ['test/telemetry/tracing.test.ts'],
    ['traces: headers stay as they were', 'source.refresh();', ''],
  ),
];
