import { snapshotOf } from '../files.ts';
import { fileErrorReply, fileReply, type Reply } from '../respond.ts';
import type { PlainCall } from '../routing.ts';
import type { CatalogContext } from './handlers.ts';

/** GET of a presigned manifest URL (partner rules 2.7, 4.2.9). */
export function manifestFile(
  { settings, world, presigner }: CatalogContext,
  { path, query }: PlainCall,
): Reply {
  const now = settings.now();
  const refusal = presigner.check(path, query, now, world.urlGeneration);
  if (refusal !== null) return fileErrorReply(refusal, now);
  const lines = world.lines(snapshotOf(path) ?? '');
  return lines === null ? fileErrorReply('freed', now) : fileReply(settings.dialect, lines, now);
}
