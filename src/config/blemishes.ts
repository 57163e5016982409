const QUOTED = /^(["'`]).*\1$/su;

/**
 * Signs that a credential was damaged on its way (specification 5.1: a trailing newline is enough for a 403): a shell's or an
 * editor's leftovers. In: the value as it was given. Out: what is wrong, in words that hold no part of the value.
 */
export function blemishesOf(text: string): string[] {
  const found: string[] = [];
  const say = (is: boolean, words: string) => {
    if (is) found.push(words);
  };
  say(text.endsWith('\r\n'), 'ends in a newline (CR LF)');
  say(/[^\r]\n$|^\n$/.test(text), 'ends in a newline');
  say(text.endsWith('\r'), 'ends in a carriage return (CR)');
  say(/^[\r\n]/.test(text) && text.length > 1, 'begins with a newline');
  const lines = text.replace(/^[\r\n]+|[\r\n]+$/g, '');
  say(/[\r\n]/.test(lines), 'has more than one line');
  say(lines.startsWith('\uFEFF'), 'begins with a byte order mark: the file was not saved as plain UTF-8');
  say(lines.includes('\uFFFD'), 'contains bytes that are not UTF-8');
  const plain = lines.replace(/^\uFEFF/, '');
  say(/^[^\S\r\n]|[^\S\r\n]$/u.test(plain), 'begins or ends in white space');
  say(QUOTED.test(plain.trim()) && plain.trim().length > 1, 'is wrapped in quotes');
  say(
    /^basic\s/i.test(plain.trim()),
    'begins with "Basic ": give only the value, the header is built from it',
  );
  say(/\p{Cc}/u.test(plain.trim().replaceAll(/[\r\n]/g, '')), 'contains a control character');
  return found;
}

/** Whether the text is `api_key:secret` in base64, the value of the header in place of one half of it. */
export function isBasicPair(text: string, apiKey: string): boolean {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(text)) return false;
  return Buffer.from(text, 'base64').toString('utf8').startsWith(`${apiKey}:`);
}
