import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exactNumber } from '../../src/cli/sql.ts';

/**
 * Returns the digits without zeros at either end, and the position of the point: the same for any two texts of one
 * number.
 */
function decimal(text: string): string {
  const [mantissa = '', exponent = '0'] = text.replace(/^-/, '').split('e');
  const [whole = '', part = ''] = mantissa.split('.');
  const digits = (whole + part).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  const point = kept === '' ? 0 : Number(exponent) - part.length + (digits.length - kept.length);
  return `${kept} ${point}`;
}

/** A numeric as Postgres writes it. */
const numerics = fc
  .record({
    digits: fc.bigInt({ min: 0n, max: 10n ** 25n }),
    scale: fc.integer({ min: 0, max: 400 }),
    minus: fc.boolean(),
  })
  .map(({ digits, scale, minus }) => {
    const text = String(digits).padStart(scale + 1, '0');
    const point = text.length - scale;
    return `${minus ? '-' : ''}${text.slice(0, point)}${scale === 0 ? '' : `.${text.slice(point)}`}`;
  });

test('a numeric becomes a JSON number only if no digit is lost', () => {
  fc.assert(
    fc.property(numerics, (text) => {
      const said = exactNumber(text);
      if (typeof said === 'string') expect(said).toBe(text);
      else expect(decimal(String(said))).toBe(decimal(text));
    }),
  );
});

test.each([
  ['0', 0],
  ['-0.00', -0],
  ['1.50', 1.5],
  ['9007199254740991', 9007199254740991],
  ['9007199254740993', '9007199254740993'],
  ['0.123456789012345678', '0.123456789012345678'],
  [`0.${'0'.repeat(350)}1`, `0.${'0'.repeat(350)}1`],
  ['NaN', 'NaN'],
  ['Infinity', 'Infinity'],
])('%s', (text, said) => {
  expect(exactNumber(text)).toBe(said);
});
