import type { RejectionReason } from '../../src/partner/manifest-lines.ts';
import type { Replies } from './mirror.ts';
import { metaOf, NEXT, type Reply, sendBytes, sendJson } from './upstream.ts';

/** A malformed manifest: what is served, and the outcomes that it may have. */
export interface ManifestCase {
  readonly name: string;
  readonly because: readonly string[];
  /** How the failed request is counted, as `route outcome`; null if every request succeeded. */
  readonly request: string | null;
  readonly rejected: { readonly reason: RejectionReason; readonly lines: number } | null;
  readonly replies: Pick<Replies, 'manifest' | 'file'>;
}

/** Outcomes of a broken file whose file request is counted under the same name. */
const FILE_KINDS: ReadonlySet<string> = new Set([
  'file-corrupt',
  'file-fault',
  'file-too-large',
  'url-expired',
  'url-refused',
  'network',
]);

/** Returns a good answer of the manifest route for a file of these lines. */
export function goodHead(lines: readonly unknown[] = NEXT, changes: Record<string, unknown> = {}): Reply {
  return (response) => sendJson(response, { ...metaOf(lines), ...changes });
}

/** Returns a case whose file is answered by `file`, after a good answer of the manifest route. */
export function badFile(
  name: string,
  because: readonly string[] | string,
  file: Reply | Buffer,
  more: { manifest?: Reply; rejected?: ManifestCase['rejected'] } = {},
): ManifestCase {
  const reasons = typeof because === 'string' ? [because] : because;
  const certain = reasons.length === 1 ? reasons[0] : undefined;
  return {
    name,
    because: reasons,
    request: certain !== undefined && FILE_KINDS.has(certain) ? `manifest-file ${certain}` : null,
    rejected: more.rejected ?? null,
    replies: {
      manifest: more.manifest ?? goodHead(),
      file: Buffer.isBuffer(file) ? (response) => sendBytes(response, file) : file,
    },
  };
}
