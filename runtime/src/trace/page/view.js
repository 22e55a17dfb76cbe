// Drawing: rows of boxes with their memory curves on one canvas. Only what is
// in sight is drawn, and boxes narrower than a pixel are drawn as the share of
// each pixel's time that they fill.
'use strict';

const COLORS = {
  F: '#3a76b5', B: '#d9822b', I: '#e8a33d', W: '#4c9a6a', U: '#7b5ea7',
  a: '#7fb0de', g: '#f0b878', s: '#c8504b', l: '#9aa5b1'};
const INK = '#1f2933', SOFT = '#6b7785', LINE = '#d9dee4', GROUND = '#eef1f4';
const LEFT = 168, RIGHT = 96, AXIS = 26;
const FONT = 'Inter,"Segoe UI","Helvetica Neue",Arial,sans-serif';

const comesIn = lane => lane.kind === 'load' || lane.kind.startsWith('recv');

class View {
  constructor(model, canvas, scroller) {
    this.model = model;
    this.canvas = canvas;
    this.scroller = scroller;
    this.begin = 0;
    this.span = model.end * 1.01;
    this.byRank = true;
    this.showMemory = true;
    this.foldEqual = model.ranks > 24 && model.folds.length < model.ranks;
    this.focus = null; // the action whose dependencies are drawn
    this.layOut();
  }

  /// Rows from top to bottom: {run, rank, y, compute, thin, memory}.
  layOut() {
    const {model} = this;
    const folds = this.foldEqual
        ? model.folds : model.roleOf.map((_, rank) => ({rank, count: 1}));
    const many = folds.length > 24;
    const compute = many ? 13 : 20, thin = many ? 3 : 5;
    const memory = this.showMemory ? (many ? 10 : 18) : 0;
    const height = compute + 2 * thin + 2 + (memory ? memory + 2 : 0);
    this.rows = [];
    this.headings = [];
    let y = 6;
    const heading = text => {
      this.headings.push({text, y});
      y += 22;
    };
    const add = (run, {rank, count}, gap) => {
      this.rows.push({run, rank, count, y, compute, thin, memory, height});
      y += height + gap;
    };
    if (this.byRank) {
      model.runs.forEach(run => heading(run.heading));
      for (const fold of folds)
        model.runs.forEach((run, i) =>
          add(run, fold, i + 1 < model.runs.length ? 2 : many ? 5 : 9));
    } else {
      for (const run of model.runs) {
        heading(run.heading);
        for (const fold of folds) add(run, fold, many ? 4 : 7);
        y += 8;
      }
    }
    this.height = y + 6;
    this.rowIndex = new Map();
    for (const row of this.rows)
      for (let i = 0; i < row.count; ++i)
        this.rowIndex.set(`${row.run.name}|${row.rank + i}`, row);
  }

  get width() { return this.canvas.clientWidth - LEFT - RIGHT; }
  x(time) { return LEFT + (time - this.begin) / this.span * this.width; }
  time(x) { return this.begin + (x - LEFT) / this.width * this.span; }

  show(begin, span) {
    const whole = this.model.end * 1.01;
    this.span = Math.min(Math.max(span, 20), whole);
    this.begin = Math.min(Math.max(begin, 0), whole - this.span);
    this.redraw();
  }
  redraw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => { this.queued = false; this.draw(); });
  }

  draw() {
    const {canvas, scroller} = this, ratio = window.devicePixelRatio || 1;
    const wide = canvas.clientWidth, high = canvas.clientHeight;
    if (canvas.width !== Math.round(wide * ratio) ||
        canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    const c = this.c = canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = '#fff';
    c.fillRect(0, 0, wide, high);
    this.top = scroller.scrollTop - AXIS;
    this.drawGrid(high);
    c.save();
    c.beginPath();
    c.rect(0, AXIS, wide, high - AXIS);
    c.clip();
    for (const {text, y} of this.headings) {
      c.fillStyle = '#fff';
      c.fillRect(LEFT, y - this.top, this.width, 21);
      this.text(text, 14, y - this.top + 15, `600 13px ${FONT}`, INK);
    }
    for (const row of this.rows) {
      const y = row.y - this.top;
      if (y + row.height >= AXIS && y <= high) this.drawRow(row, y);
    }
    if (this.focus) this.drawFocus();
    c.restore();
    this.drawAxis();
  }

  text(text, x, y, font, color, align = 'left') {
    const {c} = this;
    c.font = font;
    c.fillStyle = color;
    c.textAlign = align;
    c.fillText(text, x, y);
  }

  ticks() {
    let step = 10 ** Math.floor(Math.log10(this.span / 10));
    step *= [1, 2, 5, 10].find(f => this.span / (step * f) <= 10);
    const ticks = [];
    for (let i = Math.ceil(this.begin / step - 1e-9);
         i * step <= this.begin + this.span; ++i)
      ticks.push(i * step);
    return ticks;
  }
  drawGrid(high) {
    const {c} = this;
    c.fillStyle = LINE;
    for (const tick of this.ticks())
      c.fillRect(Math.round(this.x(tick)), AXIS, 1, high - AXIS);
  }
  drawAxis() {
    const {c} = this, ticks = this.ticks();
    c.fillStyle = '#fff';
    c.fillRect(0, 0, this.canvas.clientWidth, AXIS);
    c.fillStyle = LINE;
    c.fillRect(0, AXIS - 1, this.canvas.clientWidth, 1);
    for (const tick of ticks)
      this.text(tick ? formatTime(tick) : '0', this.x(tick), 16,
                `11px ${FONT}`, SOFT, 'center');
    this.text('memory: up to ' + formatBytes(this.model.mostMemory), 14, 16,
              `11px ${FONT}`, SOFT);
  }

  drawRow(row, y) {
    const {c, model} = this, {run, rank, compute, thin} = row;
    const role = model.roleOf[rank], data = run.ranks[rank];
    const first = run === model.runs[0] || !this.byRank;
    if (first)
      this.text(row.count > 1 ? `ranks ${rank}-${rank + row.count - 1}`
                              : `rank ${rank}`, 14, y + compute - 5, `11px ${FONT}`, INK);
    const right = this.byRank && model.runs.length > 1 ? run.name : role.name;
    this.text(right, LEFT - 10, y + compute - 5, `11px ${FONT}`, SOFT, 'right');
    if (this.byRank && model.runs.length > 1 && !first)
      this.text(role.name, 14, y + compute - 5, `11px ${FONT}`, SOFT);
    const share = run.end > 0 ? data.busy / run.end * 100 : 0;
    this.text(`${share.toFixed(1)} % busy`, LEFT + this.width + 8,
              y + compute - 5, `11px ${FONT}`, SOFT);
    c.fillStyle = GROUND;
    c.fillRect(LEFT, y, this.width, compute);
    c.save();
    c.beginPath();
    c.rect(LEFT, y - 1, this.width, row.height + 2);
    c.clip();
    data.tracks.forEach((track, lane) => {
      const bar = this.barOf(row, role.lanes[lane]);
      this.drawTrack(track, y + bar.offset, bar.height);
    });
    if (row.memory) this.drawMemory(row, data, y + row.height - row.memory);
    c.fillStyle = INK;
    for (let at = y; at < y + row.height; at += 6)
      c.fillRect(this.x(run.end) - 0.5, at, 1, 3);
    c.restore();
    if (row.memory && row.memory > 12)
      this.text(formatBytes(data.peak), LEFT + this.width + 8,
                y + row.height - 3, `10px ${FONT}`, SOFT);
  }

  barOf(row, lane) {
    if (lane.kind === 'compute') return {offset: 0, height: row.compute};
    return {offset: row.compute + 1 + (comesIn(lane) ? 0 : row.thin + 1),
            height: row.thin};
  }

  drawTrack(track, y, height) {
    const {c} = this, scale = this.width / this.span;
    const until = this.begin + this.span, pixel = 1 / scale;
    for (let i = track.after(this.begin);
         i < track.count && track.begin[i] < until;) {
      const length = track.end[i] - track.begin[i];
      if (length * scale >= 2.5) {
        this.drawBox(track, i++, y, height);
        continue;
      }
      // All that begins in this pixel, as one.
      const from = Math.floor(this.x(Math.max(track.begin[i], this.begin)));
      const next = Math.max(i + 1, track.after(this.time(from + 1) - 1e-6));
      const x = from;
      track.styles.forEach((style, k) => {
        const spent = track.sums[k][next] - track.sums[k][i];
        if (spent === 0) return;
        c.globalAlpha = Math.min(1, Math.max(0.15, spent / pixel));
        c.fillStyle = COLORS[style];
        c.fillRect(x, y, Math.max(1, spent * scale), height);
      });
      c.globalAlpha = 1;
      i = next;
    }
  }

  drawBox(track, i, y, height) {
    const {c} = this;
    const left = Math.max(this.x(track.begin[i]), LEFT - 2);
    const wide = Math.min(this.x(track.end[i]), LEFT + this.width + 2) - left;
    const instr = track.instr(i);
    c.fillStyle = COLORS[track.lane.style[instr]];
    c.fillRect(left, y, Math.max(wide - (wide > 4 ? 0.8 : 0), 1), height);
    if (height < 11 || wide < 9) return;
    const micro = track.lane.mb[instr], name = track.lane.names[instr];
    const label = wide >= 7 * name.length + 6 ? name : micro < 0 ? '' : `${micro}`;
    if (label && wide >= 6.5 * label.length + 3)
      this.text(label, left + wide / 2, y + height / 2 + 3.5, `10px ${FONT}`,
                '#fff', 'center');
  }

  /// A curve with one step a pixel: the most of what the pixel spans.
  drawMemory(row, data, y) {
    const {c} = this, {time, bytes} = data.memory;
    const up = row.memory / this.model.mostMemory;
    c.fillStyle = '#c9d6e3';
    let low = 0, high = time.length;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (time[middle] <= this.begin) low = middle;
      else high = middle;
    }
    const last = Math.min(this.begin + this.span, row.run.end);
    const end = Math.min(LEFT + this.width, Math.ceil(this.x(last)));
    for (let x = LEFT, i = low; x < end; ++x) {
      const until = this.time(x + 1);
      let most = bytes[i];
      while (i + 1 < time.length && time[i + 1] < until)
        most = Math.max(most, bytes[++i]);
      c.fillRect(x, y + row.memory - most * up, 1, most * up);
    }
  }

  /// Where an action is drawn for a run, or null.
  boxOf(run, action) {
    const row = this.rowIndex.get(`${run.name}|${action.rank}`);
    const time = this.model.time(run, action);
    if (!row || !time) return null;
    const bar = this.barOf(row, this.model.roleOf[action.rank].lanes[action.lane]);
    return {left: this.x(time.begin), right: this.x(time.end),
            y: row.y - this.top + bar.offset, height: bar.height};
  }

  drawFocus() {
    const {c, model, focus} = this, own = this.boxOf(focus.run, focus.action);
    if (!own) return;
    c.save();
    c.beginPath();
    c.rect(LEFT, AXIS, this.width, this.canvas.clientHeight);
    c.clip();
    const frame = (box, color, width) => {
      c.strokeStyle = color;
      c.lineWidth = width;
      c.strokeRect(box.left, box.y, Math.max(box.right - box.left, 1), box.height);
    };
    const join = (from, to, color) => {
      const x1 = from.right, y1 = from.y + from.height / 2;
      const x2 = to.left, y2 = to.y + to.height / 2;
      const bend = Math.max(12, Math.abs(x2 - x1) / 3);
      c.strokeStyle = color;
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(x1, y1);
      c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
      c.stroke();
      frame(from === own ? to : from, color, 1.5);
    };
    const each = (actions, use) => {
      for (const action of actions) {
        const box = this.boxOf(focus.run, action);
        if (box) use(box);
      }
    };
    each(model.waitsFor(focus.action), box => join(box, own, '#0b7285'));
    each(model.awaitedBy(focus.action), box => join(own, box, '#a61e4d'));
    each(model.peers(focus.action), box => {
      c.setLineDash([4, 3]);
      join(box.left < own.left ? box : own, box.left < own.left ? own : box, INK);
      c.setLineDash([]);
    });
    frame(own, '#000', 2);
    c.restore();
  }

  /// The action under a point of the canvas with its run, or null.
  find(x, y) {
    if (x < LEFT || x > LEFT + this.width || y < AXIS) return null;
    const at = y + this.top, time = this.time(x), near = 2 * this.span / this.width;
    const row = this.rows.find(r => at >= r.y && at < r.y + r.height);
    if (!row) return null;
    const role = this.model.roleOf[row.rank];
    let best = null;
    row.run.ranks[row.rank].tracks.forEach((track, lane) => {
      const bar = this.barOf(row, role.lanes[lane]);
      const top = row.y + bar.offset;
      if (at < top - 0.5 || at > top + bar.height + 0.5) return;
      const i = track.after(time - near);
      if (i < track.count && track.begin[i] <= time + near)
        best = {run: row.run, action: {rank: row.rank, lane,
                                       instr: track.instr(i)}};
    });
    return best || {run: row.run, rank: row.rank, time, action: null};
  }
}
