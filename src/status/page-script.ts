/**
 * The script of the status page. It fetches the page again and replaces the parts that differ, so that only the
 * server renders. Open details stay open, the focus stays where it is, a selection of text is kept, and times are
 * shown in the viewer's zone. The live region stays in the page, and its text changes with the state alone.
 */
export const PAGE_SCRIPT = `
const zoned = (root) => {
  const pad = (n) => String(n).padStart(2, '0');
  const clock = (at) => pad(at.getHours()) + ':' + pad(at.getMinutes());
  const full = (at) => at.getFullYear() + '-' + pad(at.getMonth() + 1) + '-' + pad(at.getDate()) +
    ' ' + clock(at) + ':' + pad(at.getSeconds());
  const zone = new Intl.DateTimeFormat([], { timeZoneName: 'short' }).formatToParts().find(({ type }) => type === 'timeZoneName').value;
  for (const time of root.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    if (time.className === 'clock') time.textContent = full(at) + ' ' + zone;
    else time.title = full(at) + ' ' + zone;
  }
  for (const text of root.querySelectorAll('text[data-at]')) text.textContent = clock(new Date(text.dataset.at));
};
const stops = 'a[href], summary';
const replace = (now, next) => {
  if (now.outerHTML === next.outerHTML) return;
  for (const open of now.querySelectorAll('details[open]')) next.querySelector('#' + open.id)?.setAttribute('open', '');
  const focused = [...now.querySelectorAll(stops)].indexOf(document.activeElement);
  now.replaceWith(document.adoptNode(next));
  if (focused >= 0) next.querySelectorAll(stops)[focused]?.focus({ preventScroll: true });
};
const part = (page, name) => page.querySelector('[data-part=' + name + ']');
const show = (page) => {
  zoned(page);
  document.title = page.title;
  replace(document.querySelector('link[rel=icon]'), page.querySelector('link[rel=icon]'));
  const names = ['state', 'problems', 'cards', 'changes'];
  if (names.some((name) => (part(document, name) === null) !== (part(page, name) === null))) {
    replace(document.querySelector('header'), page.querySelector('header'));
    replace(document.querySelector('main'), page.querySelector('main'));
  } else for (const name of names) if (part(document, name) !== null) replace(part(document, name), part(page, name));
  const [spoken, next] = [document.querySelector('#spoken'), page.querySelector('#spoken')];
  if (spoken.dataset.state !== next.dataset.state) {
    spoken.dataset.state = next.dataset.state;
    spoken.textContent = next.textContent;
  }
};
const refresh = async () => {
  const lost = document.querySelector('#lost');
  try {
    if (getSelection().isCollapsed && !document.hidden) {
      const answer = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(8000) });
      if (!answer.ok) throw new Error('status ' + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const since = lost.querySelector('time');
      since.dateTime = page.querySelector('#lost time').dateTime;
      show(page);
      zoned(lost);
      lost.hidden = true;
    }
  } catch {
    lost.hidden = false;
  }
  setTimeout(refresh, 5000);
};
zoned(document);
setTimeout(refresh, 5000);
`;
