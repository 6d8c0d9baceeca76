/// The script of the picker's page: what the machine says is shown, what a person does is sent.
enum PickerScript {
    static let text = #"""
        const ended = 'The picker has ended. This page can be closed.';
        const ui = {}; let state = null, list = null, grid = false;
        // One after the other: what is picked is picked with the name that was typed before.
        let posted = Promise.resolve();
        const post = (kind, more) => posted = posted.then(() => ask('/event', Object.assign({ kind }, more)));
        const name = item => item.name;
        function build(first) {
          list = new List('Documents', load, fill, item => item && post('enter', { item }), mark);
          list.onselect = () => { ui.pick.disabled = !mayConfirm(); };
          ui.places = make('select', { id: 'places', 'aria-label': 'Place', onchange: () => {
            const place = state.places[ui.places.value];
            if (place) place.folder ? post('visit', { folder: place.folder }) : post('recent');
          } });
          ui.up = make('button', { id: 'up', onclick: () => post('up') }, 'Up');
          ui.where = make('span', { class: 'grow', id: 'where' });
          ui.filter = make('input', { type: 'search', id: 'filter', autocomplete: 'off', placeholder: 'In this folder',
            'aria-label': 'Filter names here', oninput: () => post('filter', { text: ui.filter.value }) });
          ui.search = make('input', { type: 'search', id: 'search', autocomplete: 'off', placeholder: 'Everywhere',
            'aria-label': 'Search all domains', onkeydown: event => {
              if (event.key === 'Enter' && ui.search.value) post('search', { text: ui.search.value }); } });
          ui.sort = make('select', { id: 'sort', 'aria-label': 'Sort by',
            onchange: () => post('sort', { text: ui.sort.value }) },
            ['name', 'date', 'size', 'kind', 'state', 'tags'].map(word => make('option', { value: word }, word)));
          ui.reverse = make('button', { id: 'reverse', onclick: () => post('reverse') }, 'Reverse');
          ui.grid = make('button', { id: 'grid', 'aria-pressed': 'false', onclick: () => {
            grid = !grid; ui.grid.setAttribute('aria-pressed', grid); list.setGrid(grid); } }, 'Pictures');
          ui.hidden = make('button', { id: 'hidden', 'aria-pressed': 'false', onclick: () => post('hidden') }, 'Hidden');
          ui.pages = make('span', {}); ui.frame = make('div', { id: 'frame' });
          ui.count = make('p', { id: 'count', role: 'status', class: 'soft' });
          ui.message = make('p', { id: 'message', role: 'alert' });
          ui.name = make('input', { id: 'name', autocomplete: 'off', value: first.name || '',
            oninput: () => post('name', { text: ui.name.value }),
            onkeydown: event => { if (event.key === 'Enter') confirm(); } });
          ui.folder = make('button', { id: 'newfolder', onclick: newFolder }, 'New folder');
          ui.rename = make('button', { id: 'rename', onclick: rename }, 'Rename');
          ui.pick = make('button', { id: 'pick', class: 'main', onclick: confirm }, verb(first));
          ui.cancel = make('button', { id: 'cancel', onclick: () => post('cancel') }, 'Cancel');
          byId('main').replaceChildren(...[make('h1', {}, document.title),
            make('div', { class: 'bar' }, ui.places, ui.pages, ui.up, ui.where),
            make('div', { class: 'bar' }, ui.filter, ui.search, ui.sort, ui.reverse, ui.grid, ui.hidden),
            list.element, ui.frame, ui.count, ui.message,
            first.choices.length ? make('div', { class: 'bar', id: 'choices' }, first.choices.map(choiceOf)) : null,
            first.hasName ? make('div', { class: 'bar' }, make('label', { for: 'name' }, 'Name'), ui.name) : null,
            make('div', { class: 'bar' }, first.picksPlace ? [ui.folder, ui.rename] : null, make('span', { class: 'grow' }),
              ui.cancel, ui.pick)].filter(part => part));
          document.addEventListener('keydown', event => { if (event.key === 'Escape') post('cancel'); });
          list.element.focus();
          offerPages();
        }
        // What whoever asks wants to know besides.
        function choiceOf(choice, index) {
          const id = 'choice' + index, label = make('label', { for: id }, choice.label);
          const say = option => post('choose', { choice: index, option: +option });
          if (choice.isFlag) {
            return [make('input', { type: 'checkbox', id, checked: choice.chosen === 1,
              onchange: event => say(event.target.checked ? 1 : 0) }), label];
          }
          return [label, make('select', { id, onchange: event => say(event.target.value) },
            choice.names.map((name, option) =>
              make('option', { value: option, selected: option === choice.chosen }, name)))];
        }
        // A provider's own page: it reaches nothing, and of what it says an identifier counts, or that there is none.
        async function offerPages() {
          const { domains } = await (await ask('/pages')).json();
          ui.pages.replaceChildren(...domains.map(domain =>
            make('button', { class: 'page', onclick: () => openPage(domain) }, 'Page of ' + domain)));
        }
        async function openPage(domain) {
          const answer = await (await ask('/page', { domain })).json();
          if (answer.error) { ui.message.textContent = answer.error; return; }
          const frame = make('iframe', { sandbox: 'allow-scripts', referrerpolicy: 'no-referrer', src: answer.address,
            title: 'Page of ' + domain });
          const close = () => {
            removeEventListener('message', hear); ui.frame.replaceChildren(); list.element.hidden = false;
            list.element.focus(); };
          async function hear(event) {
            if (event.source !== frame.contentWindow || event.origin !== 'null') return;
            const said = event.data;
            if (!said || typeof said !== 'object') return;
            if (said.cancel === true) return close();
            if (typeof said.identifier !== 'string') return;
            close();
            const done = await (await ask('/picked', { domain, identifier: said.identifier.slice(0, 1024) })).json();
            ui.message.textContent = done.error || '';
          }
          addEventListener('message', hear);
          list.element.hidden = true;
          ui.frame.replaceChildren(frame, make('button', { onclick: close }, 'Back to the list'));
        }
        const verb = now => ({ open: 'Open', import: 'Import', move: 'Move here', export: 'Export here',
          create: 'Create here', save: 'Save here' })[now.mode];
        function mayConfirm() {
          if (state.picksPlace) return !!state.folder;
          if (state.marked.length) return true;
          if (state.picksFolders) return true;
          return !!list.current;
        }
        function confirm() {
          const item = list.current;
          if (!state.picksPlace && !state.marked.length && item) {
            return item.isFolder && !state.picksFolders ? post('enter', { item }) : post('confirm', { item });
          }
          post('confirm');
        }
        function mark(item) { if (item) post('mark', { item }); }
        // In place of the button that asked for it.
        function askName(button, label, text, word, act) {
          const field = make('input', { id: button.id + 'name', autocomplete: 'off', 'aria-label': label, value: text,
            onkeydown: event => {
              if (event.key === 'Enter') close(true);
              if (event.key === 'Escape') { event.stopPropagation(); close(false); } } });
          const row = make('span', {}, field, ' ', make('button', { onclick: () => close(true) }, word));
          function close(isMeant) {
            if (isMeant) act(field.value);
            row.replaceWith(button); button.focus();
          }
          button.replaceWith(row); field.focus(); field.select();
        }
        function newFolder() {
          askName(ui.folder, 'Name of the new folder', '', 'Make', text => post('folder', { text }));
        }
        function rename() {
          const item = list.current;
          // What is shown may stand for a name that is no text.
          if (item) askName(ui.rename, 'New name of ' + item.name, item.name, 'Rename',
            text => text === item.name || post('rename', { item, text }));
        }
        async function load(offset, limit) {
          const mine = state.generation;
          const answer = await ask(`/items?generation=${mine}&offset=${offset}&limit=${limit}`);
          if (!answer.ok) return { total: 0, items: [] };
          const page = await answer.json();
          if (page.generation !== state.generation) return null;
          ui.count.textContent = counted(page.total) + (page.reason ? ' · ' + page.reason : '') + marked();
          return page;
        }
        const counted = total => total + (total === 1 ? ' item' : ' items');
        const marked = () => state.marked.length ? ` · ${state.marked.length} marked` : '';
        function fill(row, item, isGrid) {
          const isMarked = state.marked.includes(item.domain + '/' + item.pathBytes);
          const mark = isMarked ? '✓ ' : '', folder = item.isFolder ? '/' : '';
          const word = item.percent !== undefined ? Math.round(item.percent) + '%'
            : item.state === 'current' ? '' : item.state;
          const label = make('span', { class: 'name', title: item.name }, mark + item.name + folder);
          if (isGrid) {
            const picture = make('span', { class: 'picture', 'aria-hidden': 'true' }, item.isFolder ? '/'
              : item.name.split('.').slice(1).pop() || '');
            row.append(picture, label, make('span', { class: 'cell soft' }, word));
            if (!item.isFolder) show(picture, item, row);
            return;
          }
          row.append(label, make('span', { class: 'cell soft' }, word),
            make('span', { class: 'cell soft' }, item.isFolder ? '' : size(item.size)),
            make('span', { class: 'cell soft far' }, item.date.slice(0, 10)));
        }
        async function show(picture, item, row) {
          const answer = await ask(`/thumbnail?domain=${encodeURIComponent(item.domain)}&path=${
            encodeURIComponent(item.pathBytes)}`);
          if (answer.status !== 200 || !row.isConnected) return;
          const address = URL.createObjectURL(await answer.blob());
          const image = make('img', { alt: '', src: address });
          image.onload = () => URL.revokeObjectURL(address);
          picture.replaceChildren(image);
        }
        function take(next) {
          const before = state;
          state = next;
          if (!before) build(next);
          if (next.phase === 'finished') return over(next.isPicked ? 'Done. This page can be closed.'
            : 'Cancelled. This page can be closed.');
          ui.where.textContent = next.where;
          ui.up.disabled = !next.folder || !next.folder.path;
          ui.sort.value = next.key; ui.hidden.setAttribute('aria-pressed', next.showsHidden);
          ui.reverse.setAttribute('aria-pressed', next.isDescending);
          ui.message.textContent = next.phase === 'performing' ? 'Working…' : next.message || '';
          ui.message.className = next.message ? 'bad' : '';
          if (document.activeElement !== ui.filter) ui.filter.value = next.filter;
          if (document.activeElement !== ui.name) ui.name.value = next.name || '';
          const places = next.places.map(place => place.title + (place.note ? ` (${place.note})` : ''));
          if (!before || before.places.length !== next.places.length) {
            ui.places.replaceChildren(make('option', { value: -1 }, 'Go to…'),
              ...places.map((text, index) => make('option', { value: index }, text)));
          }
          ui.places.value = -1;
          if (!before || before.generation !== next.generation) list.reset();
          else if (before.marked.length !== next.marked.length) {
            for (const row of list.rows.values()) row.remove();
            list.rows.clear(); list.draw();
            ui.count.textContent = counted(list.total) + marked();
          }
          ui.pick.disabled = !mayConfirm() || next.phase === 'performing';
        }
        begin(async () => {
          let version = -1;
          for (;;) {
            const next = await (await ask('/state?after=' + version)).json();
            version = next.version;
            if (!next.hasPlaces && !state) continue;
            take(next);
            if (next.phase === 'finished') { ask('/bye'); return; }
          }
        });
        """#
}
