import type { Setting } from '../../src/config/rules.ts';
import { SETTINGS } from '../../src/config/settings.ts';

const WIDTH = 110;

/** Lines of a comment, none wider than the others of this repository unless a word is. */
function comment(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length < WIDTH || lines.at(-1) === '') lines[lines.length - 1] = line;
    else lines.push(` ${word}`);
  }
  return lines.map((line) => `#${line}`);
}

function entry([name, setting]: readonly [string, Setting]): string {
  const { meaning, default: value, unset, secret } = setting;
  const sentence = meaning.replace(/^[a-z]/, (first) => first.toUpperCase());
  const required = value === undefined && unset === undefined;
  const notes = [
    `${sentence}.`,
    ...(required ? ['Required.'] : []),
    ...(unset === undefined ? [] : [`Unset: ${unset}.`]),
    ...(secret === true ? [`Or as a file: ${name}_FILE.`] : []),
  ];
  return [...comment(notes.join(' ')), `${required ? '' : '#'}${name}=${value ?? ''}`].join('\n');
}

/**
 * An environment file for compose, Docker's --env-file and systemd's EnvironmentFile: every setting with its meaning. What is
 * required has an empty value to be filled in; everything else is commented out, with its default.
 */
export function environmentExample(): string {
  const head = [
    '# Settings of catalog-mirror. Copy this file, and fill in what is required:',
    '#   cp .env.example mirror.env && chmod 600 mirror.env',
    '#   catalog-mirror run --env-file mirror.env, docker run --env-file mirror.env …, or EnvironmentFile= of systemd.',
    '# For compose copy it to .env beside docker-compose.yml, and leave the credentials in their files (docs/running.md).',
    '# A value is the rest of its line; leave out quotes, which Docker keeps. systemd takes a backslash for an escape, and at',
    "# a line's end for a continuation: give a secret that has one as a file, by NAME_FILE.",
    '# What is commented out has the default that is shown. `npm run docs` writes this file.',
  ];
  return `${[head.join('\n'), ...Object.entries<Setting>(SETTINGS).map(entry)].join('\n\n')}\n`;
}
