// What makes a page comfortable and what it does without: times in the reader's zone, and new content as it comes.
(() => {
  'use strict';
  const two = (n) => String(n).padStart(2, '0');
  const ago = (t, now) => {
    const s = Math.round((now - t) / 1000), d = Math.abs(s);
    const one = d < 60 ? d + ' s' : d < 3600 ? Math.floor(d / 60) + ' min' : d < 172800 ? Math.floor(d / 3600) + ' h' : Math.floor(d / 86400) + ' days';
    return s < -1 ? 'in ' + one : d < 2 ? 'now' : one + ' ago';
  };
  const clock = (t, now) => {
    const hm = two(t.getHours()) + ':' + two(t.getMinutes());
    if (t.toDateString() === now.toDateString()) return hm;
    const opts = { month: 'short', day: 'numeric' };
    if (t.getFullYear() !== now.getFullYear()) opts.year = 'numeric';
    return t.toLocaleDateString(undefined, opts) + ', ' + hm;
  };
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });
  const put = (el, text) => { if (el.textContent !== text) el.textContent = text; };
  const times = () => {
    const now = new Date();
    for (const el of document.querySelectorAll('time[datetime]')) {
      const t = new Date(el.dateTime);
      if (isNaN(t)) continue;
      put(el, el.dataset.as === 'clock' ? clock(t, now) : el.dataset.as === 'due' && t <= now ? 'due' : ago(t, now));
      el.title = full.format(t);
    }
    for (const el of document.querySelectorAll('text[data-at]')) {
      const t = new Date(el.dataset.at);
      if (!isNaN(t) && el.textContent.includes(':')) put(el, two(t.getHours()) + ':' + two(t.getMinutes()) + (el.textContent.length > 5 ? ':' + two(t.getSeconds()) : ''));
    }
  };
  const copies = () => {
    if (!navigator.clipboard) return;
    for (const code of document.querySelectorAll('.commands code')) {
      if (code.nextElementSibling) continue;
      const b = document.createElement('button');
      b.type = 'button';
      b.className = 'copy';
      b.textContent = 'copy';
      b.setAttribute('aria-label', 'copy ' + code.textContent);
      b.addEventListener('click', () => navigator.clipboard.writeText(code.textContent).then(() => { b.textContent = 'copied'; setTimeout(() => { b.textContent = 'copy'; }, 1500); }, () => {}));
      code.after(b);
    }
  };
  const state = document.getElementById('state');
  const tell = (word, kind) => { if (state) { put(state, word); state.className = 'state ' + kind; } };
  const fresh = () => { times(); copies(); };
  fresh();
  setInterval(times, 1000);

  const live = document.body.dataset.live;
  if (!live) return;
  let asking = false, again = false;
  const busy = () => { const s = getSelection(); return s && !s.isCollapsed; }; // who marks text keeps it
  const load = async () => {
    if (asking) { again = true; return; }
    if (busy() || document.hidden) { again = true; return; }
    asking = true;
    again = false;
    try {
      const r = await fetch(location.pathname + location.search, { cache: 'no-cache' });
      if (r.ok || r.status === 404) swap(await r.text());
    } catch { tell('offline', 'off'); }
    asking = false;
  };
  const swap = (text) => {
    const next = new DOMParser().parseFromString(text, 'text/html').getElementById('main');
    const main = document.getElementById('main');
    if (!next || !main) return;
    const open = new Map([...main.querySelectorAll('details[id]')].map((d) => [d.id, d.open]));
    const at = new Map([...main.querySelectorAll('[data-keep]')].map((e) => [e.dataset.keep, [e.scrollLeft, e.scrollTop]]));
    const a = document.activeElement;
    const focus = a && main.contains(a) ? [a.id && '#' + CSS.escape(a.id), a.getAttribute('href') && a.tagName + '[href="' + CSS.escape(a.getAttribute('href')) + '"]', a.dataset.keep && '[data-keep="' + CSS.escape(a.dataset.keep) + '"]'].find(Boolean) : null;
    for (const d of next.querySelectorAll('details[id]')) if (open.has(d.id)) d.open = open.get(d.id);
    main.replaceChildren(...next.childNodes);
    for (const e of main.querySelectorAll('[data-keep]')) { const p = at.get(e.dataset.keep); if (p) [e.scrollLeft, e.scrollTop] = p; }
    if (focus) { const f = main.querySelector(focus); if (f) f.focus({ preventScroll: true }); }
    fresh();
  };
  setInterval(() => { if (again) load(); }, 1000);
  let last = '', timer = 0, stream = null;
  const slow = () => { if (!timer) timer = setInterval(load, 15000); }; // where no stream comes through
  const begin = () => {
    const s = stream = new EventSource(live);
    s.addEventListener('now', (e) => {
      clearInterval(timer);
      timer = 0;
      tell('live', 'on');
      if (last && last !== e.data) load();
      last = e.data;
    });
    s.addEventListener('changed', (e) => { last = e.data; load(); });
    s.onerror = () => {
      tell('reconnecting', 'off');
      slow();
      if (s.readyState === EventSource.CLOSED && s === stream) setTimeout(() => { if (s === stream) begin(); }, 10000);
    };
  };
  // A page that nobody sees keeps no connection: a browser has few of them for one place, and the dashboard may end meanwhile.
  const leave = () => { if (stream) stream.close(); stream = null; };
  addEventListener('pagehide', leave);
  addEventListener('pageshow', (e) => { if (e.persisted && window.EventSource) { leave(); begin(); load(); } });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { leave(); return; }
    if (window.EventSource && !stream) begin();
    load();
  });
  if (!window.EventSource) slow(); else if (!document.hidden) begin();
})();
