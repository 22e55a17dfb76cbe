// What the reader does: zoom, move, point, pin, switch.
'use strict';

(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const model = new Model(data);
  const find = id => document.getElementById(id);
  const canvas = find('chart'), scroller = find('scroller'), card = find('card');
  const view = new View(model, canvas, scroller);
  let pinned = false;

  find('title').textContent = data.title;
  find('shape').textContent = data.shape;

  const legend = [['F', 'forward'], ['B', 'backward'], ['I', 'input gradient'],
                  ['W', 'weight gradient'], ['U', 'update'],
                  ['a', 'activation transfer'], ['g', 'gradient transfer'],
                  ['s', 'all-reduce, tied sums'], ['l', 'load']];
  const used = new Set(model.roles.flatMap(
      role => role.lanes.flatMap(lane => [...new Set(lane.style)])));
  const element = (name, text, style) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (style) e.className = style;
    return e;
  };
  for (const [style, text] of legend) {
    if (!used.has(style)) continue;
    const entry = element('span', text), box = element('i');
    box.style.background = COLORS[style];
    entry.prepend(box);
    find('legend').append(entry);
  }

  function size() {
    canvas.style.height = `${scroller.clientHeight}px`;
    find('tall').style.height = `${view.height + AXIS}px`;
    view.draw(); // at once: a canvas of another size would be stretched
  }
  new ResizeObserver(size).observe(scroller);
  scroller.addEventListener('scroll', () => { hide(); view.redraw(); });

  function listOf(title, actions, run, last) {
    if (!actions.length) return;
    const line = element('div', `${title} `, 'line');
    actions.slice(0, 8).forEach((action, i) => {
      const time = model.time(run, action);
      const rank = action.rank === last.rank ? '' : ` on rank ${action.rank}`;
      line.append(i ? ', ' : '', element('b', model.name(action)),
                  time ? `${rank} (ends ${formatTime(time.end)})` : rank);
    });
    if (actions.length > 8) line.append(` and ${actions.length - 8} more`);
    card.append(line);
  }

  const PHASES = Object.fromEntries(legend);
  function fill(hit) {
    card.replaceChildren();
    if (!hit.action) {
      const memory = hit.run.ranks[hit.rank].memory;
      let i = memory.time.findIndex(time => time > hit.time) - 1;
      if (i < 0) i = memory.time.length - 1;
      card.append(element('div', `rank ${hit.rank} (` +
          `${model.roleOf[hit.rank].name}) at ${formatTime(hit.time)}`, 'name'),
          element('div', `memory in use: ${formatBytes(memory.bytes[i])}, ` +
              `peak ${formatBytes(hit.run.ranks[hit.rank].peak)}`, 'line'));
      return;
    }
    const {action} = hit, role = model.roleOf[action.rank];
    const lane = role.lanes[action.lane], micro = lane.mb[action.instr];
    const head = element('div', model.name(action), 'name');
    head.append(element('small', ` ${PHASES[lane.style[action.instr]]}, rank ` +
        `${action.rank} (${role.name}), lane ${lane.name}` +
        (micro < 0 ? '' : `, micro-batch ${micro}`)));
    card.append(head);
    const times = model.runs.map(run => model.time(run, action));
    model.runs.forEach((run, i) => {
      const time = times[i];
      if (!time) return;
      const length = time.end - time.begin;
      let text = `${run.name}: ${formatTime(length)}, from ` +
          `${formatTime(time.begin)} to ${formatTime(time.end)}`;
      if (i === 1 && times[0] && times[0].end > times[0].begin) {
        const more = length / (times[0].end - times[0].begin) * 100 - 100;
        text += ` (${more >= 0 ? '+' : ''}${more.toFixed(1)} %)`;
      }
      card.append(element('div', text, 'line'));
    });
    listOf('waits for', model.waitsFor(action), hit.run, action);
    listOf('waited for by', model.awaitedBy(action), hit.run, action);
    listOf('other end:', model.peers(action), hit.run, action);
    const buffers = model.buffers(action);
    if (buffers.length)
      card.append(element('div', 'buffers: ' + buffers.map(buffer =>
          `${buffer.name}${buffer.count > 1 ? `[${buffer.slot}]` : ''} ` +
          formatBytes(buffer.bytes)).join(', '), 'line'));
  }

  function place(event) {
    card.hidden = false;
    const {clientWidth: wide, clientHeight: high} = document.documentElement;
    const box = card.getBoundingClientRect();
    card.style.left = `${Math.max(4, Math.min(event.clientX + 14,
                                              wide - box.width - 8))}px`;
    const below = event.clientY + 18;
    card.style.top = `${below + box.height < high - 4
        ? below : Math.max(4, event.clientY - box.height - 12)}px`;
  }
  function hide() {
    if (pinned) return;
    card.hidden = true;
    if (!view.focus) return;
    view.focus = null;
    view.redraw();
  }
  const spot = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  function point(event) {
    const hit = view.find(...spot(event));
    if (!hit) return hide();
    const focus = hit.action ? hit : null;
    const same = (a, b) => a && b && a.run === b.run &&
        ['rank', 'lane', 'instr'].every(key => a.action[key] === b.action[key]);
    if (!same(view.focus, focus) || !focus) fill(hit);
    if (!same(view.focus, focus) && (view.focus || focus)) {
      view.focus = focus;
      view.redraw();
    }
    place(event);
  }

  let drag = null;
  canvas.addEventListener('pointerdown', event => {
    drag = {x: event.clientX, y: event.clientY, begin: view.begin,
            top: scroller.scrollTop, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    if (!drag) {
      if (!pinned) point(event);
      return;
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag.moved = true;
    scroller.scrollTop = drag.top - dy;
    view.show(drag.begin - dx / view.width * view.span, view.span);
  });
  canvas.addEventListener('pointerup', event => {
    const moved = drag && drag.moved;
    drag = null;
    if (moved) return;
    pinned = false;
    point(event);
    pinned = Boolean(view.focus); // a click pins the card, one beside it lets go
    card.classList.toggle('pinned', pinned);
  });
  canvas.addEventListener('pointerleave', hide);

  const zoom = (factor, x) => {
    const at = view.time(x);
    view.show(at - (at - view.begin) * factor, view.span * factor);
  };
  canvas.addEventListener('wheel', event => {
    const [x] = spot(event);
    if (event.shiftKey || x < LEFT) return; // scrolls
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
      view.show(view.begin + event.deltaX / view.width * view.span, view.span);
    else
      zoom(Math.exp(event.deltaY / 400), x);
  }, {passive: false});
  canvas.addEventListener('dblclick', () => view.show(0, Infinity));

  const middle = () => LEFT + view.width / 2;
  const keys = {
    '+': () => zoom(0.7, middle()), '=': () => zoom(0.7, middle()),
    '-': () => zoom(1 / 0.7, middle()), '0': () => view.show(0, Infinity),
    w: () => zoom(0.7, middle()), s: () => zoom(1 / 0.7, middle()),
    a: () => view.show(view.begin - view.span / 5, view.span),
    d: () => view.show(view.begin + view.span / 5, view.span),
    ArrowLeft: () => view.show(view.begin - view.span / 5, view.span),
    ArrowRight: () => view.show(view.begin + view.span / 5, view.span),
    Escape: () => { pinned = false; hide(); }};
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || !keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  });

  const relayout = () => { view.layOut(); size(); };
  const group = find('group'), memory = find('memory');
  if (model.runs.length < 2) group.hidden = true;
  group.addEventListener('click', () => {
    view.byRank = !view.byRank;
    group.textContent = view.byRank ? 'one run after the other'
                                    : 'runs side by side';
    relayout();
  });
  memory.addEventListener('click', () => {
    view.showMemory = !view.showMemory;
    memory.textContent = view.showMemory ? 'hide memory' : 'show memory';
    relayout();
  });
  const fold = find('fold');
  const foldText = () => {
    fold.textContent = view.foldEqual ? 'all ranks' : 'equal ranks once';
  };
  fold.hidden = model.folds.length === model.ranks;
  foldText();
  fold.addEventListener('click', () => {
    view.foldEqual = !view.foldEqual;
    foldText();
    relayout();
  });
  find('whole').addEventListener('click', () => view.show(0, Infinity));
  size();
})();
