// The plan and its runs: unpacks what page_data.cpp wrote, and answers what an
// action waits for and what waits for it.
'use strict';

const STYLES = 'FBIWUagsl';

/// Times of one lane of one rank in one run, with sums of the time spent up to
/// each action by style, for drawing many actions as one.
class Track {
  constructor(lane, times, at) {
    const count = times.length / 2;
    this.lane = lane;
    this.at = at;
    this.begin = new Float64Array(count);
    this.end = new Float64Array(count);
    this.styles = [...new Set(lane.style)];
    this.sums = this.styles.map(() => new Float64Array(count + 1));
    let last = 0;
    for (let i = 0; i < count; ++i) {
      this.begin[i] = last + times[2 * i];
      this.end[i] = last = this.begin[i] + times[2 * i + 1];
      const style = lane.style[this.instr(i)];
      this.styles.forEach((s, k) => {
        this.sums[k][i + 1] = this.sums[k][i] +
            (s === style ? times[2 * i + 1] : 0);
      });
    }
  }
  get count() { return this.begin.length; }
  instr(i) { return this.at ? this.at[i] : i; }
  /// Place of an instruction, or -1 where the run has no record of it.
  find(instr) {
    return this.at ? this.at.indexOf(instr) : instr < this.count ? instr : -1;
  }
  /// First action that ends after the time.
  after(time) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function unpackWaits(flat) {
  const waits = [];
  for (let i = 0; i < flat.length; i += 1 + 2 * flat[i]) {
    const list = [];
    for (let k = 0; k < flat[i]; ++k)
      if (flat[i + 2 + 2 * k] > 0)
        list.push({lane: flat[i + 1 + 2 * k], instr: flat[i + 2 + 2 * k] - 1});
    waits.push(list);
  }
  return waits;
}

function unpackMemory(flat) {
  const points = {time: [], bytes: []};
  let time = 0;
  for (let i = 0; i < flat.length; i += 2) {
    points.time.push(time += flat[i]);
    points.bytes.push(flat[i + 1]);
  }
  return points;
}

class Model {
  constructor(data) {
    this.data = data;
    this.roles = data.roles;
    this.roleOf = [];
    for (const role of this.roles) {
      for (let i = 0; i < role.replicas; ++i) this.roleOf.push(role);
      role.transfers = new Map();
      role.lanes.forEach((lane, index) => {
        lane.names = lane.names ? lane.names.split('\n') : [];
        lane.waits = unpackWaits(lane.waits);
        lane.awaited = null;
        lane.target.forEach((end, instr) => {
          if (end >= 0)
            role.transfers.set(`${end}|${lane.mb[instr]}`, {lane: index, instr});
        });
      });
    }
    this.ranks = this.roleOf.length;
    this.runs = data.runs.map(run => this.unpackRun(run));
    // Ranks in a row whose times are the same in all runs.
    this.folds = [];
    for (let rank = 0; rank < this.ranks; ++rank) {
      const last = this.folds[this.folds.length - 1];
      if (last && this.roleOf[last.rank] === this.roleOf[rank] &&
          this.runs.every(run => run.ranks[last.rank] === run.ranks[rank]))
        ++last.count;
      else
        this.folds.push({rank, count: 1});
    }
    this.end = Math.max(1, ...this.runs.map(run => run.end));
    this.mostMemory = Math.max(1, ...this.runs.map(
        run => run.ranks.reduce((most, rank) => Math.max(most, rank.peak), 0)));
  }

  unpackRun(run) {
    const ranks = [];
    run.ranks.forEach((packed, rank) => {
      if (typeof packed === 'number') return ranks.push(ranks[packed]);
      const role = this.roleOf[rank];
      ranks.push({
        busy: packed.busy, peak: packed.peak,
        memory: unpackMemory(packed.memory),
        tracks: packed.lanes.map((times, lane) => new Track(
            role.lanes[lane], times, packed.at[lane]))});
    });
    return {name: run.name, heading: run.heading, end: run.end, ranks};
  }

  /// Begin and end of an action in a run, or null.
  time(run, {rank, lane, instr}) {
    const track = run.ranks[rank].tracks[lane], i = track.find(instr);
    return i < 0 ? null : {begin: track.begin[i], end: track.end[i]};
  }

  name({rank, lane, instr}) {
    return this.roleOf[rank].lanes[lane].names[instr];
  }

  /// The other ends of a transfer.
  peers({rank, lane, instr}) {
    const own = this.roleOf[rank].lanes[lane], end = own.target[instr];
    if (end < 0) return [];
    const sends = end & 1, pairs = this.data.channels[end >> 1][2], found = [];
    for (let i = 0; i < pairs.length; i += 2) {
      if (pairs[i + 1 - sends] !== rank) continue;
      const peer = pairs[i + sends];
      const other = this.roleOf[peer].transfers.get(`${end ^ 1}|${own.mb[instr]}`);
      if (other) found.push({rank: peer, ...other});
    }
    return found;
  }

  /// What the action waits for in its own rank, the action before it included.
  waitsFor({rank, lane, instr}) {
    const list = this.roleOf[rank].lanes[lane].waits[instr]
                     .map(wait => ({rank, ...wait}));
    if (instr > 0 && !list.some(wait => wait.lane === lane))
      list.push({rank, lane, instr: instr - 1});
    return list;
  }

  /// What waits for the action in its own rank.
  awaitedBy({rank, lane, instr}) {
    const role = this.roleOf[rank];
    if (!role.lanes[lane].awaited) {
      for (const each of role.lanes) each.awaited = each.names.map(() => []);
      role.lanes.forEach((from, index) => from.waits.forEach((list, i) => {
        for (const wait of list)
          role.lanes[wait.lane].awaited[wait.instr].push({lane: index, instr: i});
      }));
    }
    const list = role.lanes[lane].awaited[instr].map(to => ({rank, ...to}));
    if (instr + 1 < role.lanes[lane].names.length &&
        !list.some(to => to.lane === lane))
      list.push({rank, lane, instr: instr + 1});
    return list;
  }

  /// Names, slots and sizes of the buffers that the action touches.
  buffers({rank, lane, instr}) {
    const role = this.roleOf[rank], own = role.lanes[lane];
    return role.touches[own.touch[instr]].map(index => {
      const [name, bytes, count, slotOf] = role.pools[index];
      const slot = slotOf.length && own.mb[instr] >= 0
          ? slotOf[own.mb[instr]] : 0;
      return {name, bytes, count, slot};
    });
  }
}

function formatTime(nanos) {
  const abs = Math.abs(nanos);
  for (const [unit, name] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']])
    if (abs >= unit) return `${+(nanos / unit).toPrecision(4)} ${name}`;
  return `${Math.round(nanos)} ns`;
}

function formatBytes(bytes) {
  let unit = 0;
  for (; Math.abs(bytes) >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return `${+bytes.toPrecision(4)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}
