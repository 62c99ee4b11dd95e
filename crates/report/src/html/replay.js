// Draws a recording (crates/results/src/replay.rs) on a canvas, and moves in it. Times are picoseconds from the start of
// the window. The page has the recording as JSON in the element #recording.
//
//   recording ──> hops with absolute times ──┬─> by link ──> what waits and what is on its way at a time ──> canvas
//                                            ├─> events in order ──> steps, and a sentence for each
//                                            └─> bytes that wait, as steps ──> the figure of queues
'use strict';
(() => {
  const $ = (id) => document.getElementById(id);
  const source = $('recording');
  if (!source) return;
  const { length, from: start, nodes, links, workloads, packets, hops, pauses, circuits, tiers } =
    JSON.parse(source.textContent);
  const US = 1e6;
  const [ARRIVES, MARKED, DROPPED, LOST, LOST_BY_HOST] = [0, 1, 2, 3, 4];
  const [DATA, ACK, RETRANSMISSION, CONTROL, DATAGRAM] = [0, 1, 2, 3, 4];

  // ---- The recording, ready to be asked ----

  const count = hops.packet.length;
  const entered = new Float64Array(count);
  const queued = new Float64Array(count);
  const starts = new Float64Array(count);
  const left = new Float64Array(count);
  const arrives = new Float64Array(count);
  const hopsOfLink = links.map(() => []);
  const hopsOfPacket = packets.size.map(() => []);
  for (let hop = 0, time = 0; hop < count; hop++) {
    const link = links[hops.link[hop]];
    time += hops.entered[hop];
    entered[hop] = time;
    queued[hop] = time + hops.paced[hop];
    starts[hop] = time + hops.wait[hop];
    const gone = hops.fate[hop] === DROPPED || hops.fate[hop] === LOST_BY_HOST;
    left[hop] = gone ? starts[hop] : starts[hop] + packets.size[hops.packet[hop]] * 8e12 / link.rate;
    arrives[hop] = gone ? starts[hop] : left[hop] + link.delay;
    hopsOfLink[hops.link[hop]].push(hop);
    hopsOfPacket[hops.packet[hop]].push(hop);
  }
  // The longest time that a packet is at a port and on its link: nothing that entered earlier can still be there.
  const longest = hopsOfLink.map((all) => Math.max(0, ...all.map((hop) => arrives[hop] - entered[hop])));
  const isHost = (node) => nodes[node].tier === 0;
  const linkName = (link) => `${nodes[links[link].from].name} → ${nodes[links[link].to].name}`;
  const waits = (hop, at) => entered[hop] <= at && at < starts[hop];

  // The first place in an ascending list whose value is above `at`.
  const above = (list, at, value) => {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value(list[middle]) <= at) low = middle + 1; else high = middle;
    }
    return low;
  };

  // Calls `visit` for every hop of a link that has begun and not ended at a time, in the order in which they began.
  const present = (link, at, visit) => {
    const all = hopsOfLink[link];
    const last = above(all, at, (hop) => entered[hop]);
    const first = above(all, at - longest[link] - 1, (hop) => entered[hop]);
    for (let place = first; place < last; place++) {
      if (arrives[all[place]] > at) visit(all[place]);
    }
  };

  // The bytes that wait at each port as a function of time: times, and the bytes from each time on.
  const series = hopsOfLink.map((all) => {
    const changes = [];
    for (const hop of all) {
      if (starts[hop] <= entered[hop]) continue;
      const size = packets.size[hops.packet[hop]];
      changes.push([entered[hop], size], [starts[hop], -size]);
    }
    changes.sort((a, b) => a[0] - b[0]);
    let bytes = 0;
    const [times, values] = [[], []];
    for (const [time, change] of changes) {
      bytes += change;
      if (times.at(-1) === time) values[values.length - 1] = bytes;
      else { times.push(time); values.push(bytes); }
    }
    return { times, values, most: values.length ? Math.max(...values) : 0 };
  });
  const bytesAt = ({ times, values }, at) => {
    const place = above(times, at, (time) => time);
    return place ? values[place - 1] : 0;
  };

  // ---- Words ----

  const number = (value) => Math.round(value).toLocaleString('en');
  const bytesText = (bytes) => {
    const digits = (value) => value >= 100 ? value.toFixed(0) : value.toPrecision(3);
    return bytes < 10000 ? `${number(bytes)} B` : bytes < 1e6 ? `${digits(bytes / 1e3)} kB` : `${digits(bytes / 1e6)} MB`;
  };
  const spanText = (ps) => ps < US ? `${(ps / 1e3).toFixed(0)} ns`
    : ps < 1000 * US ? `${(ps / US).toFixed(2)} us` : `${(ps / 1e9).toFixed(3)} ms`;
  // The time since the start of the run, to the nanosecond.
  const clock = (at) => {
    const ns = Math.round((start + at) / 1e3);
    const [us, rest] = [Math.floor(ns / 1000), ns % 1000];
    const ms = Math.floor(us / 1000);
    return `${number(ms)}.${String(us % 1000).padStart(3, '0')} ${String(rest).padStart(3, '0')} ms`;
  };
  const packetName = (packet) => {
    const what = {
      [DATA]: 'a packet', [ACK]: 'an acknowledgement', [RETRANSMISSION]: 'a retransmission',
      [CONTROL]: 'a handshake packet', [DATAGRAM]: 'a datagram',
    }[packets.kind[packet]];
    return `${what} of ${workloads[packets.workload[packet]] ?? 'an unknown workload'}`
      + ` (${number(packets.size[packet])} B, ${nodes[packets.source[packet]].name} to`
      + ` ${nodes[packets.destination[packet]].name})`;
  };

  // ---- Events, in their order ----

  const events = [];
  for (let hop = 0; hop < count; hop++) {
    events.push({ at: entered[hop], hop, what: 'enters' });
    const fate = hops.fate[hop];
    if (fate === DROPPED || fate === LOST_BY_HOST) { events.push({ at: starts[hop], hop, what: 'dropped' }); continue; }
    if (starts[hop] > entered[hop]) events.push({ at: starts[hop], hop, what: 'starts' });
    if (fate === LOST) events.push({ at: arrives[hop], hop, what: 'lost' });
    else if (isHost(links[hops.link[hop]].to)) events.push({ at: arrives[hop], hop, what: 'arrives' });
  }
  for (const [link, since, until] of pauses) {
    events.push({ at: since, link, what: 'pauses' }, { at: until, link, what: 'resumes' });
  }
  for (const [sender, receiver, since, until] of circuits) {
    events.push({ at: since, sender, receiver, what: 'circuit' }, { at: until, sender, receiver, what: 'circuit ends' });
  }
  const shownEvents = events.filter(({ at }) => at >= 0 && at <= length);
  shownEvents.sort((a, b) => a.at - b.at || (a.hop ?? -1) - (b.hop ?? -1));

  const sentence = ({ what, hop, link, sender, receiver }) => {
    if (what === 'pauses' || what === 'resumes') return `${nodes[links[link].to].name} ${what} ${linkName(link)}`;
    if (what === 'circuit') return `a circuit from ${nodes[sender].name} to ${nodes[receiver].name} stands`;
    if (what === 'circuit ends') return `the circuit from ${nodes[sender].name} to ${nodes[receiver].name} ends`;
    const packet = hops.packet[hop];
    const { from, to } = links[hops.link[hop]];
    const name = packetName(packet);
    const port = linkName(hops.link[hop]);
    const marks = hops.fate[hop] === MARKED ? ', and marks it CE' : '';
    if (what === 'enters') {
      const reached = isHost(from) ? `${nodes[from].name} sends ${name}` : `${nodes[from].name} receives ${name}`;
      if (hops.fate[hop] === DROPPED && starts[hop] === entered[hop]) return `${reached}`;
      if (starts[hop] === entered[hop]) return `${reached}; the port to ${nodes[to].name} sends it at once${marks}`;
      const ahead = bytesAt(series[hops.link[hop]], entered[hop]) - packets.size[packet];
      const behind = ahead > 0 ? `behind ${bytesText(ahead)}` : 'for the link';
      return `${reached}; it waits ${behind} at the port to ${nodes[to].name}`;
    }
    if (what === 'starts') {
      return `${port} begins to send ${name} after ${spanText(starts[hop] - entered[hop])}${marks}`;
    }
    if (what === 'dropped') {
      return hops.fate[hop] === LOST_BY_HOST ? `${nodes[from].name} loses ${name}` : `${port} drops ${name}`;
    }
    if (what === 'lost') return `${name} is lost on ${port}`;
    return `${nodes[to].name} receives ${name}`;
  };

  // ---- State ----

  let now = 0;
  let eventNumber = -1;
  let playing = false;
  let chosen = null;
  let speed = 10 * US;

  // ---- Colours of the page ----

  const colors = {};
  const readColors = () => {
    const probe = document.createElement('i');
    document.body.append(probe);
    const color = (css) => { probe.style.color = css; return getComputedStyle(probe).color; };
    for (const name of ['page', 'card', 'edge', 'ink', 'faint', 'gridline', 'accent', 'warn-edge']) {
      colors[name] = color(`var(--${name})`);
    }
    const ofClass = (name) => { probe.className = name; probe.style.color = ''; return getComputedStyle(probe).color; };
    colors.workloads = workloads.map((_, place) => ofClass(`s${place % 8}`));
    colors.loss = ofClass('recovery');
    colors.circuit = ofClass('circuit');
    probe.remove();
  };
  const colorOf = (packet) => colors.workloads[packets.workload[packet] % colors.workloads.length] ?? colors.faint;

  // ---- Layout: hosts in a row at the bottom, a row above for each tier, and a place at its node for each port ----

  const canvas = $('network');
  const pen = canvas.getContext('2d');
  const queues = $('queues');
  const queuePen = queues.getContext('2d');
  // In a large network, only what takes part in the window is drawn.
  const takesPart = nodes.map(() => nodes.length <= 40);
  hopsOfLink.forEach((all, link) => {
    if (all.length) takesPart[links[link].from] = takesPart[links[link].to] = true;
  });
  const isShown = (link) => takesPart[links[link].from] && takesPart[links[link].to];
  const shownLinks = links.map((_, link) => link).filter(isShown);

  let boxes = [];
  let ends = [];
  let height = 0;
  const HOST_HEIGHT = 50;
  const GAP = 104;

  // The row of a node: its tier, but a circuit switch stands beside the packet switch.
  const levelOf = (node) => tiers[nodes[node].tier] === 'ocs' ? nodes[node].tier - 1 : nodes[node].tier;

  // Lays everything out for a width in CSS pixels.
  const layOut = (width) => {
    const rows = tiers.map((_, tier) => nodes.map((_, node) => node)
      .filter((node) => takesPart[node] && levelOf(node) === tier));
    const neighbours = nodes.map(() => new Set());
    for (const link of shownLinks) neighbours[links[link].from].add(links[link].to);
    boxes = nodes.map(() => null);
    const filled = rows.map((row, tier) => ({ row, tier })).filter(({ row }) => row.length);
    const top = Math.max(...filled.map(({ tier }) => tier));
    const hasAbove = (tier) => filled.some((other) => other.tier > tier);
    const boxHeight = (tier) => tier === 0 ? HOST_HEIGHT : hasAbove(tier) ? 112 : 84;
    let y = 10;
    for (const { row, tier } of [...filled].reverse()) {
      for (const node of row) boxes[node] = { y, height: boxHeight(tier), x: 0, width: 0 };
      y += boxHeight(tier) + (tier === 0 ? 0 : GAP);
    }
    height = y + 8;
    // Hosts: side by side. Switches next to them: over their hosts. Those above: side by side, in the order of what is
    // below them.
    for (const { row, tier } of filled) {
      const slot = width / row.length;
      const middle = (node) => {
        const below = [...neighbours[node]].filter((other) => levelOf(other) < tier);
        const xs = below.map((other) => boxes[other].x + boxes[other].width / 2);
        return xs.length ? xs.reduce((sum, x) => sum + x, 0) / xs.length : 0;
      };
      const ordered = tier === 0 ? orderHosts(row, neighbours)
        : [...row].sort((a, b) => middle(a) - middle(b) || a - b);
      ordered.forEach((node, place) => {
        const box = boxes[node];
        const hosts = [...neighbours[node]].filter((other) => isHost(other));
        const inset = Math.min(8, slot * 0.08);
        if (tier === 0 || !hosts.length) {
          [box.x, box.width] = [place * slot + inset, slot - 2 * inset];
        } else {
          const lefts = hosts.map((host) => boxes[host].x);
          const rights = hosts.map((host) => boxes[host].x + boxes[host].width);
          box.x = Math.min(...lefts);
          box.width = Math.max(...rights) - box.x;
        }
      });
    }
    // The ports of a node: one place for both directions of a link, sorted by what is at the other end.
    ends = links.map(() => null);
    const places = new Map();
    const key = (a, b, parallel) => `${a} ${b} ${parallel}`;
    const parallels = new Map();
    const parallelOf = links.map(({ from, to }) => {
      const pair = key(from, to, '');
      const parallel = parallels.get(pair) ?? 0;
      parallels.set(pair, parallel + 1);
      return parallel;
    });
    nodes.forEach((_, node) => {
      if (!boxes[node]) return;
      const sides = { up: [], down: [], left: [], right: [] };
      for (const link of shownLinks.filter((link) => links[link].from === node)) {
        const other = links[link].to;
        const x = boxes[other].x + boxes[other].width / 2;
        const side = levelOf(other) > levelOf(node) ? 'up' : levelOf(other) < levelOf(node) ? 'down'
          : x < boxes[node].x + boxes[node].width / 2 ? 'left' : 'right';
        sides[side].push({ other, x, parallel: parallelOf[link] });
      }
      const box = boxes[node];
      for (const [side, ports] of Object.entries(sides)) {
        ports.sort((a, b) => a.x - b.x || a.other - b.other || a.parallel - b.parallel);
        ports.forEach(({ other, x, parallel }, place) => {
          const share = (place + 1) / (ports.length + 1);
          // A port towards a host is above that host.
          const along = side === 'down' && isHost(other) && parallel === 0 ? x
            : box.x + (place + 0.5) * box.width / ports.length;
          const port = { up: [along, box.y, 0, -1], down: [along, box.y + box.height, 0, 1],
            left: [box.x, box.y + share * box.height, -1, 0],
            right: [box.x + box.width, box.y + share * box.height, 1, 0] }[side];
          places.set(key(node, other, parallel), { at: port, room: box.width / Math.max(1, ports.length) });
        });
      }
    });
    for (const link of shownLinks) {
      const { from, to } = links[link];
      const [near, far] = [places.get(key(from, to, parallelOf[link])), places.get(key(to, from, parallelOf[link]))];
      if (!near || !far) continue;
      const [x0, y0, dx, dy] = near.at;
      const [x1, y1] = far.at;
      const distance = Math.hypot(x1 - x0, y1 - y0) || 1;
      // Each direction has its lane, on the right of the line.
      const lane = Math.max(1.5, Math.min(5, near.room / 5));
      const [ox, oy] = [-(y1 - y0) / distance * lane, (x1 - x0) / distance * lane];
      ends[link] = { x0: x0 + ox, y0: y0 + oy, x1: x1 + ox, y1: y1 + oy, dx, dy, distance, lane, room: near.room,
        px: x0, py: y0 };
    }
  };

  // Hosts beside those of the same switch, switches by their smallest host.
  const orderHosts = (row, neighbours) => {
    const home = (host) => Math.min(...[...neighbours[host]].filter((other) => !isHost(other)), Infinity);
    return [...row].sort((a, b) => home(a) - home(b) || a - b);
  };

  // ---- Drawing ----

  // The longest queue of all hosts, and that of all switches: each fills its room.
  const longestOf = (hosts) => series.reduce((most, one, link) =>
    isHost(links[link].from) === hosts ? Math.max(most, one.most) : most, 1);
  const most = { host: longestOf(true), switch: longestOf(false) };
  const fit = (canvas, pen, height) => {
    const width = canvas.parentElement.clientWidth;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return width;
  };

  const line = (pen, x0, y0, x1, y1, color, width, dash = []) => {
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.setLineDash([]);
  };

  const text = (pen, words, x, y, color, align = 'left', size = 11, weight = 400) => {
    pen.font = `${weight} ${size}px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif`;
    pen.fillStyle = color;
    pen.textAlign = align;
    pen.fillText(words, x, y);
  };

  const isPaused = (link) => pauses.some(([paused, since, until]) => paused === link && since <= now && now < until);

  // The places of drawn packets, for taps.
  let drawn = [];

  const drawLink = (link) => {
    const end = ends[link];
    if (!end) return;
    const paused = isPaused(link);
    line(pen, end.x0, end.y0, end.x1, end.y1, paused ? colors.loss : colors.gridline, paused ? 1.5 : Math.abs(end.x1 - end.x0) > 9 ? 1 : 2 * end.lane - 1.5,
      paused ? [4, 4] : []);
  };

  const drawFlights = (link) => {
    const end = ends[link];
    if (!end) return;
    present(link, now, (hop) => {
      if (starts[hop] > now) return;
      const packet = hops.packet[hop];
      const delay = Math.max(links[link].delay, 1);
      const head = Math.min(1, (now - starts[hop]) / delay);
      const tail = Math.max(0, Math.min(head, (now - left[hop]) / delay));
      // A short packet is a dot at least.
      const short = 3 / end.distance;
      const behind = Math.max(0, Math.min(tail, head - short));
      const at = (share) => [end.x0 + (end.x1 - end.x0) * share, end.y0 + (end.y1 - end.y0) * share];
      const [[ax, ay], [bx, by]] = [at(behind), at(Math.max(head, short))];
      const thin = packets.kind[packet] === ACK || packets.kind[packet] === CONTROL;
      const width = Math.max(1.5, end.lane * (thin ? 0.8 : 1.5));
      if (packet === chosen) line(pen, ax, ay, bx, by, colors.ink, width + 4);
      line(pen, ax, ay, bx, by, colorOf(packet), width);
      if (packets.kind[packet] === RETRANSMISSION) line(pen, ax, ay, bx, by, colors.card, width / 3, [2, 2]);
      if (carriesMark(hop)) dot(bx, by, Math.max(2.2, width / 2), colors['warn-edge']);
      drawn.push([(ax + bx) / 2, (ay + by) / 2, packet]);
    });
  };

  // Whether the packet was marked on this hop or before.
  const carriesMark = (hop) => hopsOfPacket[hops.packet[hop]].some((other) =>
    hops.fate[other] === MARKED && entered[other] <= entered[hop]);

  const dot = (x, y, radius, color) => {
    pen.fillStyle = color;
    pen.strokeStyle = colors.card;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
    pen.stroke();
  };

  // What waits at a port, drawn from the port into its node. The longest queue of the recording fills the room.
  const drawQueue = (link) => {
    const end = ends[link];
    if (!end) return;
    const box = boxes[links[link].from];
    const upright = end.dy !== 0;
    const both = upright && boxes[links[link].from].height > 100;
    const room = upright ? both ? box.height / 2 - 18 : box.height - (isHost(links[link].from) ? 22 : 30) : Math.min(box.width / 2 - 10, 80);
    const width = Math.max(2, Math.min(upright ? 20 : 16, end.room * 0.5));
    let depth = 3;
    let bytes = 0;
    const waiting = [];
    present(link, now, (hop) => { if (waits(hop, now)) waiting.push(hop); });
    waiting.sort((a, b) => starts[a] - starts[b] || a - b);
    // Packets too short to be seen one by one are drawn as one block.
    let block = null;
    const flush = () => {
      if (!block) return;
      const { color, marked, from, long, held } = block;
      const gap = long > 2.5 ? 0.8 : 0;
      const x = upright ? end.px - width / 2 : end.px - end.dx * (from + (end.dx > 0 ? long : 0));
      const y = upright ? end.py - end.dy * (from + (end.dy > 0 ? long : 0)) : end.py - width / 2;
      const fill = (color, thick) => {
        pen.fillStyle = color;
        if (upright) pen.fillRect(x, y, thick, long - gap); else pen.fillRect(x, y, long - gap, thick);
      };
      pen.globalAlpha = held ? 0.45 : 1;
      fill(color, width);
      if (marked) fill(colors['warn-edge'], Math.min(4, width / 3));
      pen.globalAlpha = 1;
      block = null;
    };
    for (const hop of waiting) {
      const packet = hops.packet[hop];
      const size = packets.size[packet];
      bytes += size;
      const long = size / (isHost(links[link].from) ? most.host : most.switch) * (room - 3);
      const held = queued[hop] > now;
      const color = packet === chosen ? colors.ink : colorOf(packet);
      const marked = carriesMark(hop);
      const joins = block && long < 2.5 && block.color === color && block.marked === marked && block.held === held;
      if (joins) block.long += long;
      else { flush(); block = { color, marked, held, from: depth, long }; }
      drawn.push([upright ? end.px : end.px - end.dx * depth, upright ? end.py - end.dy * depth : end.py, packet]);
      depth += long;
    }
    flush();
    if (upright && end.room > 17) {
      pen.fillStyle = colors.gridline;
      pen.fillRect(end.px - width / 2, end.py - end.dy * 2 - 0.5, width, 1);
    }
    if (bytes && end.room > 64) {
      const [x, y] = upright ? [end.px + width / 2 + 4, end.py - end.dy * 9 + 4] : [end.px - end.dx * 44, end.py - width];
      text(pen, bytesText(bytes), x, y, colors.faint, 'left', 10);
    }
    if (isPaused(link)) text(pen, '❚❚', end.px + (upright ? width : 0), end.py - end.dy * 6 + 4, colors.loss, 'left', 10);
  };

  // Crosses where packets were lost, for a while that one can see.
  const drawLosses = () => {
    const lasts = Math.max(speed * 0.6, length / 100);
    for (const event of shownEvents) {
      if (event.at > now) break;
      if (event.what !== 'dropped' && event.what !== 'lost' || event.at < now - lasts) continue;
      const end = ends[hops.link[event.hop]];
      if (!end) continue;
      const [x, y] = event.what === 'lost' ? [end.x1, end.y1] : [end.px, end.py - end.dy * 12];
      pen.globalAlpha = 1 - (now - event.at) / lasts * 0.7;
      line(pen, x - 5, y - 5, x + 5, y + 5, colors.loss, 2.5);
      line(pen, x - 5, y + 5, x + 5, y - 5, colors.loss, 2.5);
      pen.globalAlpha = 1;
    }
  };

  // Circuits, inside the circuit switch: from the port of the sender's rack to that of the receiver's.
  const drawCircuits = () => {
    const uplinks = new Map();
    const circuitTier = tiers.indexOf('ocs');
    if (circuitTier < 0) return;
    const ofHost = (host) => {
      if (!uplinks.has(host)) {
        const rack = links[host].to;
        const beside = nodes.map((_, node) => node).filter((node) => isHost(node) && links[node].to === rack);
        const up = links.map((_, link) => link)
          .filter((link) => links[link].from === rack && nodes[links[link].to].tier === circuitTier);
        uplinks.set(host, up[beside.indexOf(host)]);
      }
      return ends[uplinks.get(host)];
    };
    for (const [sender, receiver, since, until] of circuits) {
      if (since > now || now >= until) continue;
      const [a, b] = [ofHost(sender), ofHost(receiver)];
      if (!a || !b) continue;
      pen.strokeStyle = colors.circuit;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.moveTo(a.x1, a.y1);
      pen.bezierCurveTo(a.x1, a.y1 - 52, b.x1, b.y1 - 52, b.x1, b.y1);
      pen.stroke();
    }
  };

  const draw = () => {
    const around = canvas.parentElement.clientWidth;
    layOut(around);
    fit(canvas, pen, height);
    drawn = [];
    shownLinks.forEach(drawLink);
    nodes.forEach(({ name, tier }, node) => {
      const box = boxes[node];
      if (!box) return;
      pen.fillStyle = colors.page;
      pen.strokeStyle = colors.edge;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.roundRect(box.x, box.y, box.width, box.height, Math.min(8, box.width / 3));
      pen.fill();
      pen.stroke();
      // A name that has no room is cut to its number.
      pen.font = '600 12px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
      const shown = [name, name.match(/\d+$/)?.[0] ?? ''].find((one) => pen.measureText(one).width < box.width - 4) ?? '';
      const y = tier === 0 ? box.y + box.height - 7 : hasTankAbove(node) ? box.y + box.height / 2 + 4 : box.y + 16;
      if (tier === 0 || box.width < 90) text(pen, shown, box.x + box.width / 2, y, colors.ink, 'center', 12, 600);
      else text(pen, shown, box.x + 8, y, colors.ink, 'left', 12, 600);
    });
    drawCircuits();
    shownLinks.forEach(drawQueue);
    shownLinks.forEach(drawFlights);
    drawLosses();
    drawQueueFigure();
    say();
  };

  // Whether a switch has ports on both sides, so that its name stands between them.
  const hasTankAbove = (node) => boxes[node].height > 100;

  // The longest queues over the whole window, each a row, with a line at the present time.
  const longestQueues = links.map((_, link) => link).filter((link) => series[link].most > 0)
    .sort((a, b) => series[b].most - series[a].most || a - b).slice(0, 6);
  const ROW = 54;
  const drawQueueFigure = () => {
    if (!longestQueues.length) { $('queue-figure').hidden = true; return; }
    const width = fit(queues, queuePen, longestQueues.length * ROW + 4);
    longestQueues.forEach((link, row) => {
      const { times, values, most } = series[link];
      const base = (row + 1) * ROW - 2;
      const x = (at) => Math.max(0, Math.min(1, at / length)) * width;
      const y = (bytes) => base - bytes / most * (ROW - 24);
      queuePen.fillStyle = colors.accent;
      queuePen.globalAlpha = 0.3;
      queuePen.beginPath();
      queuePen.moveTo(0, base);
      let bytes = bytesAt(series[link], 0);
      queuePen.lineTo(0, y(bytes));
      times.forEach((time, place) => {
        if (time < 0 || time > length) return;
        queuePen.lineTo(x(time), y(bytes));
        bytes = values[place];
        queuePen.lineTo(x(time), y(bytes));
      });
      queuePen.lineTo(width, y(bytes));
      queuePen.lineTo(width, base);
      queuePen.fill();
      queuePen.globalAlpha = 1;
      line(queuePen, 0, base, width, base, colors.gridline, 1);
      text(queuePen, linkName(link), 0, base - ROW + 17, colors.ink, 'left', 12, 600);
      const waiting = bytesAt(series[link], now);
      text(queuePen, `${bytesText(waiting)} of at most ${bytesText(most)}`, width, base - ROW + 17, colors.faint, 'right', 12);
    });
    const x = now / length * width;
    line(queuePen, x, 0, x, longestQueues.length * ROW, colors.ink, 1.2);
  };

  // ---- Words below the picture ----

  const totals = () => {
    const sum = { sent: 0, arrived: 0, marked: 0, lost: 0, waiting: 0 };
    for (const { at, what, hop } of shownEvents) {
      if (at > now) break;
      if (what === 'enters' && isHost(links[hops.link[hop]].from)) sum.sent++;
      if (what === 'arrives') sum.arrived++;
      if (what === 'dropped' || what === 'lost') sum.lost++;
      if ((what === 'starts' || what === 'enters' && starts[hop] === entered[hop]) && hops.fate[hop] === MARKED) sum.marked++;
    }
    for (const one of series) sum.waiting += bytesAt(one, now);
    return sum;
  };

  const journey = (packet) => hopsOfPacket[packet].map((hop) => {
    const fate = { [ARRIVES]: '', [MARKED]: ', marked CE', [DROPPED]: ', dropped', [LOST]: ', lost', [LOST_BY_HOST]: ', lost' };
    const waited = starts[hop] > entered[hop] ? `waits ${spanText(starts[hop] - entered[hop])}` : 'waits for nothing';
    const item = document.createElement('li');
    item.textContent = `${linkName(hops.link[hop])}: from ${clock(entered[hop])}, ${waited}${fate[hops.fate[hop]]}`;
    if (entered[hop] <= now && now < arrives[hop]) item.className = 'now';
    return item;
  });

  const say = () => {
    $('clock').textContent = clock(now);
    $('offset').textContent = `+${(now / US).toFixed(3)} us of ${(length / US).toFixed(0)} us`;
    $('at').value = now / length * 10000;
    const { sent, arrived, marked, lost, waiting } = totals();
    for (const [id, value] of Object.entries({ sent, arrived, marked, lost })) $(`n-${id}`).textContent = number(value);
    $('n-waiting').textContent = bytesText(waiting);
    const event = shownEvents[eventNumber];
    $('event').textContent = event ? `${sentence(event)}.`
      : shownEvents.length ? 'Nothing has happened yet.' : 'No packet moves in this window.';
    $('event-number').textContent = `Event ${number(eventNumber + 1)} of ${number(shownEvents.length)}`;
    $('journey').hidden = chosen === null;
    if (chosen !== null) {
      const name = packetName(chosen);
      $('journey-name').textContent = name[0].toUpperCase() + name.slice(1);
      $('journey-hops').replaceChildren(...journey(chosen));
    }
    document.documentElement.dataset.replayed = `${Math.round(now)} ${eventNumber}`;
  };

  // ---- Moving ----

  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };

  const moveTo = (at) => {
    now = Math.max(0, Math.min(length, at));
    eventNumber = above(shownEvents, now, (event) => event.at) - 1;
    redraw();
  };

  const step = (by) => {
    setPlaying(false);
    eventNumber = Math.max(-1, Math.min(shownEvents.length - 1, eventNumber + by));
    const event = shownEvents[eventNumber];
    now = event ? event.at : 0;
    if (event?.hop !== undefined) chosen = hops.packet[event.hop];
    redraw();
  };

  let before = null;
  const tick = (time) => {
    if (!playing) return;
    if (before !== null) moveTo(now + Math.min(200, time - before) / 1000 * speed);
    before = time;
    if (now >= length) setPlaying(false);
    else requestAnimationFrame(tick);
  };

  const setPlaying = (on) => {
    if (on === playing) return;
    playing = on;
    before = null;
    $('play').textContent = on ? 'Pause' : 'Play';
    $('play').setAttribute('aria-pressed', on);
    if (on) {
      if (now >= length) moveTo(0);
      requestAnimationFrame(tick);
    }
  };

  const speeds = [...$('speed').options].map((option) => Number(option.value));
  const setSpeed = (place) => {
    $('speed').selectedIndex = Math.max(0, Math.min(speeds.length - 1, place));
    speed = speeds[$('speed').selectedIndex] * US;
  };
  // The window takes about half a minute at first.
  setSpeed(speeds.reduce((best, value, place) =>
    Math.abs(Math.log(length / US / value / 30)) < Math.abs(Math.log(length / US / speeds[best] / 30)) ? place : best, 0));

  const actions = {
    play: () => setPlaying(!playing),
    'step-back': () => step(-1),
    'step-on': () => step(1),
    'us-back': () => { setPlaying(false); moveTo(now - US); },
    'us-on': () => { setPlaying(false); moveTo(now + US); },
  };
  for (const [id, act] of Object.entries(actions)) $(id).addEventListener('click', act);
  $('at').addEventListener('input', () => { setPlaying(false); moveTo($('at').value / 10000 * length); });
  $('speed').addEventListener('change', () => setSpeed($('speed').selectedIndex));
  $('choose-none').addEventListener('click', () => { chosen = null; redraw(); });

  document.addEventListener('keydown', (event) => {
    const field = event.target.closest?.('select, input, textarea, button, a, summary');
    if (field && (event.key === ' ' || field.matches('select, input:not(#at), textarea'))) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const keys = {
      ' ': actions.play, Home: () => moveTo(0), End: () => moveTo(length), Escape: () => { chosen = null; redraw(); },
      ArrowLeft: () => event.shiftKey ? actions['us-back']() : step(-1),
      ArrowRight: () => event.shiftKey ? actions['us-on']() : step(1),
      ArrowUp: () => setSpeed($('speed').selectedIndex + 1), ArrowDown: () => setSpeed($('speed').selectedIndex - 1),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // A tap chooses the nearest packet.
  canvas.addEventListener('click', (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [nearest, distance] = [null, 24];
    for (const [px, py, packet] of drawn) {
      const away = Math.hypot(px - x, py - y);
      if (away < distance) [nearest, distance] = [packet, away];
    }
    chosen = nearest;
    redraw();
  });
  const scrub = (event) => {
    const box = queues.getBoundingClientRect();
    setPlaying(false);
    moveTo((event.clientX - box.left) / box.width * length);
  };
  queues.addEventListener('pointerdown', scrub);
  queues.addEventListener('pointermove', (event) => { if (event.buttons) scrub(event); });

  addEventListener('resize', redraw);
  const recolor = () => { readColors(); redraw(); };
  new MutationObserver(recolor).observe(document.documentElement, { attributeFilter: ['data-theme'] });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolor);

  // A link to a moment: #us=24.5, or #event=12.
  const follow = () => {
    const [, unit, value] = location.hash.match(/^#(us|event)=([\d.]+)$/) ?? [];
    if (unit === 'us') moveTo(value * US);
    if (unit === 'event') step(Number(value) - 1 - eventNumber);
  };
  addEventListener('hashchange', follow);
  readColors();
  moveTo(0);
  follow();
  draw();
})();
