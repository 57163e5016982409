import { line, OVER, REPEATED } from './log-event.ts';

/** Lines of `catalog-mirror follow`, on stderr. */
export const FOLLOWING = {
  'follower.started': line('info', 'following changes', ['follower', 'position', 'afterSku', 'delivery']),
  'follower.copied': line('info', 'the first copy is delivered; changes follow', ['follower', 'position']),
  'follower.delivered': line('debug', 'a batch of changes was delivered', [
    'follower',
    'to',
    'changes',
    'durationMs',
  ]),
  'follower.failing': line(
    ['warn', 'debug'],
    'a batch of changes was not delivered',
    ['follower', 'to', 'status', 'said', 'failures', 'retryInMs', ...REPEATED],
    'the position stands and nothing is lost; it is tried again after retryInMs. `status` and `said` are what the receiver answered',
  ),
  'follower.recovered': line('info', 'the receiver takes changes again', ['follower', ...OVER]),
  'follower.dead-letter': line(
    'error',
    'a batch of changes was refused for good and is a dead letter',
    ['follower', 'first', 'last', 'changes', 'attempts', 'status', 'said'],
    'what follows is delivered. Correct the receiver, then `catalog-mirror follow --name NAME --resend --webhook URL`',
  ),
  'follower.smaller': line(
    'warn',
    'the receiver takes less at once: what it refused (413) is sent again in parts',
    ['follower', 'changes', 'bytes', 'status', 'said'],
    'Nothing is missing. For bodies of 96 KiB raise the body limit of the receiver, or set a smaller `--batch`.',
  ),
  'follower.unwanted': line(
    'error',
    'the receiver wants no more changes (410 Gone)',
    ['follower', 'position'],
    'the process exits with 1 and the position stands. Where that is meant, `catalog-mirror follow --name NAME --forget`',
  ),
  'follower.undelivered': line(
    'error',
    'a batch of changes was not delivered within --attempts, and --once waits no longer',
    ['follower', 'position'],
    'the process exits with 1 and the position stands; the next run tries again',
  ),
  'follower.store-lost': line(
    ['warn', 'debug'],
    'Postgres cannot be reached; nothing is delivered',
    ['follower', 'err', 'retryInMs', ...REPEATED],
    'the connection is made again; what was not kept is delivered again',
  ),
  'follower.store-back': line('info', 'Postgres answers again', ['follower', ...OVER]),
  'follower.stopped': line('info', 'following has stopped', ['follower', 'position']),
} as const;
