/*
 * Loaded before the program (node --import): SIGUSR2 throws an error that nobody catches, with CRASH_TEXT wherever
 * an error can carry text; SIGURG makes a promise reject with it instead.
 */

function crash(): Error {
  const text = process.env['CRASH_TEXT'] ?? '';
  const inner = Object.assign(new TypeError(`Invalid URL: ${text}`), {
    code: 'ERR_INVALID_URL',
    input: text,
  });
  return Object.assign(new Error(`broken: ${text}`, { cause: inner }), { options: { headers: [text] } });
}

process.on('SIGUSR2', () => {
  setImmediate(() => {
    throw crash();
  });
});
process.on('SIGURG', () => void Promise.reject(crash()));
