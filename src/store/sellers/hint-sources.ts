import type { Sql } from '../connection/db.ts';

/**
 * What refreshes have shown about a source of hints (view catalog.hint_sources), and how many of its hints wait for
 * a refresh.
 */
export interface HintSourceStats {
  readonly source: string;
  readonly hints: number;
  readonly refreshesBroughtForward: number;
  /** How often a SKU that it hints at has moved, and which part of all moves it tells of. */
  readonly precision: number;
  readonly recall: number;
  readonly waiting: number;
}

/** Hints as `status` and the metrics show them. */
export interface HintStats {
  /** Given and not read yet. Not split by source, because sellers choose the names. */
  readonly unread: number;
  /** Sources with the most hints first; at most 51. */
  readonly sources: readonly HintSourceStats[];
}

/** Reads what is known about hints at present. */
export async function readHintStats(sql: Sql): Promise<HintStats> {
  const [row] = await sql<[HintStats]>`
    with waiting as (
      select source, count(*) as hints from catalog_internal.waiting_hints group by source
    )
    select (select count(*)::int from catalog_internal.hints) as unread,
      (select coalesce(json_agg(json_build_object('source', s.source, 'hints', s.hints,
         'refreshesBroughtForward', s.refreshes_brought_forward,
         'precision', s.precision, 'recall', s.recall, 'waiting', coalesce(w.hints, 0)) order by s.hints desc, s.source), '[]')
       from catalog.hint_sources s left join waiting w using (source)) as sources`;
  return row;
}
