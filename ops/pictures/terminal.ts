import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/launch.ts';
import { Screen } from './screen.ts';
import { svgOf } from './svg.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const COMMAND = 'npm run demo';
const [COLUMNS, ROWS] = [100, 40];
/** The picture is taken when the load is so far, and some prices have moved. */
const FROM_PERCENT = 55;
const WITHIN_MS = 180_000;
const CTRL_C = '\u0003';

/**
 * Runs the demo on a pseudo terminal (by util-linux's `script`) and draws its screen, half-way through the initial load, as
 * `demo.svg` in `outDir`. Returns the files that it has written. Throws where the demo ends before that, or does not get there in time.
 */
export async function terminalPicture(outDir: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-picture-'));
  try {
    const screen = await demoScreen(folder);
    await mkdir(outDir, { recursive: true });
    const file = join(outDir, 'demo.svg');
    await writeFile(file, svgOf(screen.rows(), COLUMNS, COMMAND));
    return [file];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function demoScreen(cwd: string): Promise<Screen> {
  const words = [process.execPath, ...NODE_FLAGS, MAIN, 'demo'].map((word) => `'${word}'`).join(' ');
  const terminal = spawn(
    'script',
    ['-qfec', `stty cols ${COLUMNS} rows ${ROWS}; exec ${words}`, '/dev/null'],
    {
      cwd,
      env: {
        PATH: process.env['PATH'],
        TERM: 'xterm-256color',
        LANG: 'C.UTF-8',
        npm_lifecycle_event: 'demo',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const ended = once(terminal, 'close');
  const screen = new Screen(COLUMNS);
  terminal.stdout.setEncoding('utf8');
  const timer = setTimeout(() => terminal.stdin.write(CTRL_C), WITHIN_MS);
  try {
    for await (const piece of terminal.stdout as AsyncIterable<string>) {
      screen.write(withoutPassword(piece));
      if (isPicture(screen.text())) return screen;
    }
    throw new Error(`the demo has ended before its picture was taken:\n${screen.text()}`);
  } finally {
    clearTimeout(timer);
    terminal.stdin.write(CTRL_C);
    terminal.stdout.destroy();
    await ended;
  }
}

/** That of the demo's own Postgres is made anew for each folder, and is nobody's; in a picture it would be noise. */
const withoutPassword = (text: string): string => text.replace(/(postgres:\/\/postgres:)[^@\s]+@/, '$1…@');

function isPicture(text: string): boolean {
  const [, percent = '0'] = /^filling .* (\d+) % /m.exec(text) ?? [];
  return Number(percent) >= FROM_PERCENT && text.includes('just now') && text.trimEnd().endsWith('kept');
}
