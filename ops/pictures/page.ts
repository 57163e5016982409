import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { VIEWS } from '../../test/status/views.ts';
import { startBrowser } from '../../test/support/browser.ts';
import { servePages } from '../../test/support/page-server.ts';

const SCHEMES = ['light', 'dark'] as const;
const WIDTH = 1280;
/** Down to the end of the charts. */
const HEIGHT = 1240;

/** Takes pictures of the status page of a healthy mirror, light and dark, in a Chromium of this machine. Returns the files it wrote. */
export async function pagePictures(outDir: string): Promise<string[]> {
  await mkdir(outDir, { recursive: true });
  await using server = await servePages(() => VIEWS.healthy);
  await using browser = await startBrowser();
  const files: string[] = [];
  // One after the other: Chromium draws the tab in front, and may never come to a picture of another one.
  for (const scheme of SCHEMES) {
    const tab = await browser.open(server.urlOf('healthy'), { width: WIDTH, scheme, script: false });
    const file = join(outDir, `page-${scheme}.png`);
    await writeFile(file, await tab.screenshot(HEIGHT));
    await tab.close();
    files.push(file);
  }
  return files;
}
