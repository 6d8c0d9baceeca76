/// What all pages share: no resource of anybody else, and no text of a stranger as markup.
enum WebPage {
    static func html(_ title: String) -> String {
        let shown = title.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>\(shown)</title>
            <meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
            <link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css">
            <script src="/page.js" defer></script></head>
            <body><main id="main"><h1>\(shown)</h1><p id="wait" role="status">One moment…</p>
            <noscript>This page needs JavaScript.</noscript></main></body></html>
            """
    }

    static let style = """
        :root { color-scheme: light dark; --line: color-mix(in srgb, CanvasText 25%, Canvas);
          --soft: color-mix(in srgb, CanvasText 70%, Canvas); }
        * { box-sizing: border-box; }
        body { font: 15px system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText; }
        main { max-width: 70rem; margin: auto; padding: .5rem 1rem 1rem; }
        h1 { font-size: 1.25rem; margin: .5rem 0; } h2 { font-size: 1.05rem; margin: 1.2rem 0 .4rem; }
        button, input, select { font: inherit; color: inherit; padding: .3rem .7rem; border-radius: .3rem;
          border: 1px solid var(--soft); background: Canvas; }
        button:disabled { opacity: .5; } button[aria-pressed=true] { border-width: 2px; font-weight: 600; }
        button.main { background: CanvasText; color: Canvas; border-color: CanvasText; }
        :focus-visible { outline: 3px solid #3d7eff; outline-offset: 1px; }
        .bar { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .5rem 0; }
        .bar .grow { flex: 1; min-width: 8rem; } .soft { color: var(--soft); }
        select { max-width: 18rem; } th { white-space: nowrap; }
        #message { min-height: 1.4em; } #message.bad { font-weight: 600; }
        .list { height: min(52vh, 40rem); overflow-y: auto; position: relative; border: 1px solid var(--line);
          contain: strict; }
        .list[hidden] { display: none; } iframe { width: 100%; height: min(52vh, 40rem); border: 1px solid var(--line);
          background: Canvas; }
        .spacer { width: 1px; }
        .row { position: absolute; left: 0; right: 0; top: 0; height: 34px; line-height: 34px; padding: 0 .6rem;
          display: flex; gap: .8rem; contain: strict; cursor: default; }
        .row .name { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .row .cell { width: 7.5rem; text-align: right; white-space: nowrap; overflow: hidden; }
        .row[aria-selected=true] { background: CanvasText; color: Canvas; }
        .row[aria-selected=true] .soft { color: Canvas; }
        .grid .row { height: 150px; width: 140px; right: auto; flex-direction: column; gap: .2rem; line-height: 1.3;
          padding: .4rem; text-align: center; }
        .grid .row .name { width: 100%; } .grid .cell { width: 100%; text-align: center; font-size: .85rem; }
        .grid .picture { height: 86px; border: 1px solid var(--line); border-radius: .3rem;
          width: 100%; display: flex; align-items: center; justify-content: center; }
        .grid img { max-width: 120px; max-height: 86px; }
        table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .6rem .25rem 0;
          border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
        .beside { overflow-x: auto; border: 1px solid var(--line); padding: .5rem; margin: .3rem 0; }
        .beside table { table-layout: fixed; } .beside th { white-space: normal; overflow-wrap: anywhere; }
        .beside td { border: 0; padding: 0 .6rem 0 0; white-space: pre-wrap; font-family: monospace; }
        .beside .add, .beside .cut { font-weight: 600; } .beside .same { color: var(--soft); }
        @media (max-width: 40rem) { .row .cell.far { display: none; } .row .cell { width: 5.5rem; }
          table, thead, tbody, tr, td { display: block; } thead { position: absolute; clip-path: inset(50%); height: 1px;
          width: 1px; overflow: hidden; } tr { border-bottom: 1px solid var(--line); padding: .3rem 0; }
          td { border: 0; padding: .1rem 0; } td:empty { display: none; }
          td::before { content: attr(data-label) ": "; color: var(--soft); }
          .beside .same + .same { display: none; } }
        .beside td.add::before { content: "+ "; } .beside td.cut::before { content: "- "; }
        .beside td.same::before { content: "  "; }
        """

    static let script = #"""
        'use strict';
        const byId = id => document.getElementById(id);
        let key = sessionStorage.getItem('key');
        // Never innerHTML: everything of a stranger is text.
        function make(tag, attributes, ...children) {
          const element = document.createElement(tag);
          for (const [name, value] of Object.entries(attributes || {})) {
            if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
            else if (value === true) element.setAttribute(name, '');
            else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
          }
          for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
          return element;
        }
        function over(text) {
          byId('main').replaceChildren(make('h1', {}, document.title), make('p', { role: 'status', id: 'over' }, text));
        }
        async function ask(path, body) {
          const options = { headers: { 'x-promisefs-key': key } };
          if (body !== undefined) {
            options.method = 'POST'; options.body = JSON.stringify(body);
            options.headers['content-type'] = 'application/json';
          }
          const answer = await fetch(path, options).catch(() => null);
          if (answer && answer.status !== 403) return answer;
          // Whoever answered has ended: what was waiting for it has nothing to go on with.
          if (!byId('over')) over(answer ? 'This page is of no use any more. Ask for a new one.' : ended);
          return new Promise(() => {});
        }
        const size = bytes => {
          if (bytes < 1000) return bytes + ' B';
          let value = bytes, unit = '';
          for (unit of ['kB', 'MB', 'GB', 'TB']) { value /= 1000; if (value < 999.5) break; }
          return (value >= 10 ? Math.round(value) : Math.round(value * 10) / 10) + ' ' + unit;
        };
        async function begin(start) {
          const token = location.hash.slice(1);
          if (token) {
            history.replaceState(null, '', location.pathname);
            const answer = await fetch('/session', { method: 'POST', body: JSON.stringify({ token }),
              headers: { 'content-type': 'application/json' } });
            if (!answer.ok) return over(await answer.text());
            key = (await answer.json()).key;
            sessionStorage.setItem('key', key);
          }
          if (!key) return over('This page was opened by nobody. Ask for one on the command line.');
          start();
        }
        // Only what is in sight is in the page, however long the list is.
        class List {
          constructor(label, load, fill, activate, choose) {
            Object.assign(this, { load, fill, activate, choose });
            this.total = 0; this.selected = -1; this.generation = 0; this.windows = new Map(); this.rows = new Map();
            this.height = 34; this.columns = 1;
            this.spacer = make('div', { class: 'spacer', role: 'presentation' });
            this.element = make('div', { class: 'list', role: 'listbox', tabindex: 0, 'aria-label': label,
              id: 'list' }, this.spacer);
            this.element.addEventListener('scroll', () => requestAnimationFrame(() => this.draw()), { passive: true });
            this.element.addEventListener('click', event => {
              const row = event.target.closest('.row');
              if (row) { this.select(row.index); if (event.ctrlKey) this.choose(this.item(row.index)); }
            });
            this.element.addEventListener('dblclick', () => this.activate(this.current));
            this.element.addEventListener('keydown', event => this.press(event));
          }
          get current() { return this.selected < 0 ? undefined : this.item(this.selected); }
          item(n) { const page = this.windows.get(Math.floor(n / 200)); return page && page[n % 200]; }
          get lines() { return Math.ceil(this.total / this.columns); }
          // Browsers end at some 2^24 pixels: a longer list is scrolled by its part.
          get scale() { return Math.max(1, this.lines * this.height / 15e6); }
          reset() {
            this.generation++; this.windows.clear(); this.selected = -1; this.total = 0;
            for (const row of this.rows.values()) row.remove();
            this.rows.clear(); this.element.scrollTop = 0; this.element.setAttribute('aria-busy', 'true');
            // It named a line that is gone.
            this.element.removeAttribute('aria-activedescendant');
            this.fetch(0);
          }
          async fetch(number) {
            if (this.windows.has(number)) return;
            this.windows.set(number, null);
            const mine = this.generation;
            const page = await this.load(number * 200, 200);
            if (mine !== this.generation) return;
            if (!page) { this.windows.delete(number); return; }
            this.windows.set(number, page.items); this.total = page.total;
            if (this.windows.size > 12) for (const old of this.windows.keys()) {
              if (this.windows.size <= 8) break;
              if (Math.abs(old - number) > 3) this.windows.delete(old);
            }
            this.element.removeAttribute('aria-busy');
            this.spacer.style.height = this.lines * this.height / this.scale + 'px';
            if (this.selected < 0 && this.total) this.selected = 0;
            this.draw();
          }
          setGrid(on) {
            this.element.classList.toggle('grid', on);
            this.columns = on ? Math.max(1, Math.floor(this.element.clientWidth / 146)) : 1;
            this.height = on ? 156 : 34;
            this.spacer.style.height = this.lines * this.height / this.scale + 'px';
            for (const row of this.rows.values()) row.remove();
            this.rows.clear(); this.draw();
          }
          draw() {
            const view = this.element.clientHeight, top = this.element.scrollTop, start = top * this.scale;
            const firstLine = Math.max(0, Math.floor(start / this.height) - 4);
            const lastLine = Math.ceil((start + view) / this.height) + 4;
            const first = firstLine * this.columns, last = Math.min(this.total, (lastLine + 1) * this.columns) - 1;
            for (const [n, row] of this.rows) if (n < first || n > last) { row.remove(); this.rows.delete(n); }
            for (let n = first; n <= last; n++) {
              const data = this.item(n);
              if (!data) { this.fetch(Math.floor(n / 200)); continue; }
              let row = this.rows.get(n);
              if (!row) {
                row = make('div', { class: 'row', role: 'option', id: 'row' + n, 'aria-posinset': n + 1 });
                row.index = n; this.rows.set(n, row); this.element.append(row);
                this.fill(row, data, this.columns > 1 || this.height > 100);
              }
              const y = Math.floor(n / this.columns) * this.height - start + top;
              row.style.transform = `translate(${n % this.columns * 146}px, ${y}px)`;
              row.setAttribute('aria-setsize', this.total);
              row.setAttribute('aria-selected', n === this.selected);
            }
            if (this.rows.has(this.selected)) this.element.setAttribute('aria-activedescendant', 'row' + this.selected);
            else this.element.removeAttribute('aria-activedescendant');
            this.onselect && this.onselect();
          }
          select(n) {
            if (!this.total) return;
            this.selected = Math.max(0, Math.min(this.total - 1, n));
            const y = Math.floor(this.selected / this.columns) * this.height, view = this.element.clientHeight;
            const start = this.element.scrollTop * this.scale;
            if (y < start) this.element.scrollTop = y / this.scale;
            if (y + this.height > start + view) this.element.scrollTop = (y + this.height - view) / this.scale;
            this.draw();
          }
          press(event) {
            const page = Math.max(1, Math.floor(this.element.clientHeight / this.height)) * this.columns;
            const steps = { ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: page, PageUp: -page,
              Home: -this.total, End: this.total };
            if (this.columns > 1) Object.assign(steps, { ArrowRight: 1, ArrowLeft: -1 });
            if (event.key in steps) this.select(this.selected + steps[event.key]);
            else if (event.key === 'Enter') this.activate(this.current);
            else if (event.key === ' ') this.choose(this.current);
            else return;
            event.preventDefault();
          }
        }

        """#
}
