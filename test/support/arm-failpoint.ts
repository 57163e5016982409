import { armFailpoints } from '../../src/lib/failpoint.ts';

/*
 * Loaded before the program (node --import): FAILPOINT=name:n ends the process by SIGKILL when it passes the point
 * for the n-th time.
 */

const [point, nth] = (process.env['FAILPOINT'] ?? '').split(':');
let passed = 0;
armFailpoints((at) => {
  if (at !== point) return;
  passed += 1;
  if (passed === Number(nth)) process.kill(process.pid, 'SIGKILL');
});
