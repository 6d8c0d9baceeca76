/// The script of the page to look after it all.
enum OverviewScript {
    static let text = #"""
        const ended = 'PromiseFS does not answer any more: promisefs web shows a new page.';
        const page = {};
        const cell = text => make('td', {}, text === undefined || text === null ? '' : String(text));
        const head = names => make('tr', { role: 'row' }, names.map(name =>
          make('th', { scope: 'col', role: 'columnheader' }, name)));
        const moment = text => text ? text.slice(0, 16).replace('T', ' ') : '';
        const button = (text, label, act) => make('button', { 'aria-label': label, onclick: act }, text);
        const say = text => { page.message.textContent = text; };
        function tabled(caption, names, rows, none) {
          if (!rows.length) return make('p', { class: 'soft' }, none);
          // On a narrow screen each cell is a line with its column's name; it stays a table for whoever hears it.
          for (const row of rows) {
            row.setAttribute('role', 'row');
            [...row.children].forEach((part, index) => {
              part.dataset.label = names[index]; part.setAttribute('role', 'cell'); });
          }
          return make('table', { 'aria-label': caption, role: 'table' }, make('thead', { role: 'rowgroup' }, head(names)),
            make('tbody', { role: 'rowgroup' }, rows));
        }
        async function send(path, body) {
          const answer = await (await ask(path, body)).json();
          say(answer.error || answer.text || '');
          return answer;
        }
        function problems(domains) {
          const rows = [];
          for (const domain of domains) {
            const add = (what, remedy) => rows.push(make('tr', {}, cell(domain.name), cell(what), cell(remedy)));
            if (domain.problem) add(domain.problem, 'promisefs doctor');
            const status = domain.status;
            if (!status) continue;
            if (status.connection !== 'online') add(status.connectionMessage || status.connection,
              'Changes wait here until the provider answers: promisefs doctor');
            if (status.pausedSince) add('Paused: nothing is sent', `promisefs resume ${domain.name}`);
            for (const work of domain.pending) if (work.error) add(`${work.path}: ${work.error}`,
              'It is tried again: promisefs pending');
            const count = status.conflicts;
            if (count) add(`${count} document${count === 1 ? '' : 's'} in conflict`, 'Choose a version below');
            for (const limit of status.limitations || []) add(limit, '');
          }
          return tabled('Problems', ['Domain', 'What', 'What to do'], rows, 'No problems.');
        }
        function domainTable(domains) {
          return tabled('Domains', ['Domain', 'State', 'Items', 'Away', 'To be sent', 'Kept here', 'Where'],
            domains.map(({ name, status, mountPoint, problem }) => make('tr', {}, cell(name),
              cell(status ? status.connection : problem), cell(status && status.nodes), cell(status && status.placeholders),
              cell(status && status.pending), cell(status && size(status.cacheBytes)), cell(mountPoint))),
            'No domain is mounted.');
        }
        function workTable(domains) {
          const rows = domains.flatMap(domain => domain.pending.map(work => make('tr', {}, cell(domain.name), cell(work.kind),
            cell(work.path), cell(work.progress === undefined ? work.isRunning ? 'running' : 'waiting'
              : Math.round(work.progress * 100) + '%'), cell(work.error))));
          return tabled('Under way', ['Domain', 'What', 'Path', 'State', 'Problem'], rows, 'Nothing is under way.');
        }
        // Since the first one of each domain.
        function transferTable(domains) {
          const rows = domains.flatMap(domain => ((domain.status || {}).hydrations || []).map(line => make('tr', {},
            cell(domain.name), cell(line.program), cell(line.fetches), cell(size(line.bytes)), cell(line.refusals))));
          for (const { name, status } of domains) if (status && status.sentBytes) rows.push(make('tr', {}, cell(name),
            cell('Sent to the provider'), cell(''), cell(size(status.sentBytes)), cell('')));
          const times = domains.map(({ status }) => (status || {}).transfersSince).filter(Boolean).sort();
          const title = times.length ? `Transfers since ${times[0].slice(0, 10)}` : 'Transfers';
          return tabled(title, ['Domain', 'Program', 'Fetches', 'Bytes', 'Refused'], rows, 'Nothing was transferred.');
        }
        let order = 'largest';
        async function storage(domain, wanted) {
          order = wanted;
          const found = await (await ask(`/storage?domain=${encodeURIComponent(domain)}&order=${order}`)).json();
          const act = (item, action) => async () => {
            await send('/item', { domain, path: item.pathBytes, action }); storage(domain, order); };
          const rows = (found.items || []).map(item => make('tr', {}, cell(item.path + (item.count === undefined ? ''
            : ` (${item.count} document${item.count === 1 ? '' : 's'})`)), cell(size(item.bytes)), make('td', {},
              button('Evict', 'Evict ' + item.path, act(item, 'evict')), ' ', item.isPinned
                ? button('Unpin', 'Unpin ' + item.path, act(item, 'unpin'))
                : button('Pin', 'Pin ' + item.path, act(item, 'pin')))));
          page.storage.replaceChildren(make('div', { class: 'bar' },
            ['largest', 'oldest', 'folders'].map(word => make('button', { 'aria-pressed': String(word === order),
              id: 'storage-' + word, onclick: () => storage(domain, word) }, word))),
            tabled('Storage of ' + domain, ['Path', 'Kept here', 'Choice'], rows, 'Nothing of it is here.'));
        }
        // Two versions side by side: lines that one of them lacks are beside those that the other has there.
        function beside(lines, left, right) {
          const rows = [], cut = [], add = [];
          const part = line => make('td', { class: line ? line.kind : '' }, line ? line.text : '');
          const row = (one, other) => rows.push(make('tr', {}, part(one), part(other)));
          const close = () => {
            for (let n = 0; n < Math.max(cut.length, add.length); n++) row(cut[n], add[n]);
            cut.length = add.length = 0;
          };
          for (const line of lines) {
            if (line.kind === 'same') { close(); row(line, line); } else (line.kind === 'cut' ? cut : add).push(line);
          }
          close();
          return make('div', { class: 'beside', tabindex: 0, role: 'region', 'aria-label': 'Difference' },
            tabled('Difference of ' + left, [left, right], rows, 'They are the same.'));
        }
        async function conflicts(domain) {
          const found = await (await ask('/conflicts?domain=' + encodeURIComponent(domain))).json();
          const parts = (found.documents || []).map(({ versions }) => {
            const current = versions[0], states = versions.map(version => version.state).filter(state => state);
            const choose = (action, version) => async () => {
              await send('/resolve', { domain, path: current.pathBytes, action, version, states }); conflicts(domain); };
            const shown = make('div', {});
            const compare = version => async () => {
              const answer = await send('/difference', { domain, path: current.pathBytes, version });
              const other = versions.find(one => one.identifier === version);
              shown.replaceChildren(answer.note ? make('p', {}, answer.note)
                : beside(answer.lines || [], current.path, other.path));
            };
            const others = versions.slice(1).filter(version => version.kind === 'conflict').map(version =>
              make('li', {}, `${version.path} (${size(version.size)}, ${moment(version.modificationTime)}) `,
                button('Compare', 'Compare ' + version.path, compare(version.identifier)), ' ',
                button('Keep this', 'Keep ' + version.path, choose('version', version.identifier))));
            return make('section', {}, make('h3', {}, current.path), make('p', {},
              `(${size(current.size)}, ${moment(current.modificationTime)}) `,
              button('Keep this', 'Keep ' + current.path, choose('current')), ' ',
              button('Keep both', 'Keep both of ' + current.path, choose('both'))), make('ul', {}, others), shown);
          });
          page.conflicts.replaceChildren(...(parts.length ? parts : [make('p', { class: 'soft' }, 'No conflicts.')]));
        }
        async function grants(domain) {
          const found = await (await ask('/grants?domain=' + encodeURIComponent(domain))).json();
          const revoke = grant => async () => { await send('/revoke', { domain, path: '/', grant }); grants(domain); };
          const rows = (found.grants || []).map(grant => make('tr', {}, cell(grant.application),
            cell(grant.path || grant.reason), cell(grant.kind), cell(grant.rights),
            cell(grant.launch ? 'it ends' : moment(grant.until) || 'revoked'), cell(grant.giver || 'owner'), make('td', {},
              grant.kind === 'container' ? '' : button('Revoke', `Revoke ${grant.path} of ${grant.application}`,
                revoke(grant.id)))));
          const isOpen = !!page.grants.querySelector('details[open]');
          const lines = (found.lines || []).map(line => make('tr', {}, cell(moment(line.time)), cell(line.by),
            cell(line.call), cell(line.outcome), cell(line.application), cell(line.detail)));
          page.grants.replaceChildren(tabled('Grants of ' + domain, ['Application', 'Item', 'What', 'Rights', 'Until',
            'From', 'Choice'], rows, 'No application was given anything.'),
            make('details', { open: isOpen }, make('summary', {}, 'What was done with it'), tabled('Audit of ' + domain,
              ['When', 'Who', 'What', 'Outcome', 'Of', 'Detail'], lines, 'Nothing yet.')));
        }
        let known = '', version = -1;
        async function look() {
          const answer = await (await ask('/overview?after=' + version)).json();
          if (answer.error) return say(answer.error);
          const domains = answer.domains;
          const isNew = answer.version !== version;
          if (page.domain.value && version >= 0) refresh(isNew);
          version = answer.version;
          page.problems.replaceChildren(problems(domains));
          page.domains.replaceChildren(domainTable(domains));
          page.work.replaceChildren(workTable(domains));
          page.transfers.replaceChildren(transferTable(domains));
          const names = domains.map(domain => domain.name).join('\n');
          if (names === known) return;
          known = names;
          page.domain.replaceChildren(...domains.map(domain => make('option', { value: domain.name }, domain.name)));
          chosen();
        }
        // Where somebody is with the keyboard nothing is taken away.
        function refresh(isNew) {
          const domain = page.domain.value, isFree = part => !part.contains(document.activeElement);
          if (isNew && isFree(page.storage)) storage(domain, order).catch(() => {});
          // Nor is a comparison that somebody reads.
          if (isNew && isFree(page.conflicts) && !page.conflicts.querySelector('.beside')) conflicts(domain).catch(() => {});
          if (isFree(page.grants)) grants(domain).catch(() => {});
        }
        function chosen() {
          if (!page.domain.value) return;
          storage(page.domain.value, order).catch(() => {});
          conflicts(page.domain.value).catch(() => {});
          grants(page.domain.value).catch(() => {});
        }
        begin(async () => {
          for (const name of ['problems', 'domains', 'work', 'transfers', 'storage', 'conflicts', 'grants']) {
            page[name] = make('div', { id: name });
          }
          page.message = make('p', { id: 'message', role: 'status' });
          page.domain = make('select', { id: 'domain', onchange: chosen });
          const part = (title, ...content) => make('section', {}, make('h2', {}, title), content);
          byId('main').replaceChildren(make('h1', {}, 'PromiseFS'), page.message, part('Problems', page.problems),
            part('Domains', page.domains), part('Under way', page.work),
            part('Transfers by program', page.transfers), make('div', { class: 'bar' },
              make('label', { for: 'domain' }, 'Conflicts, grants and storage of'), page.domain),
            part('Conflicts', page.conflicts), part('Grants', page.grants), part('Storage', page.storage));
          for (;;) {
            await look();
            await new Promise(done => setTimeout(done, 100));
          }
        });
        """#
}
